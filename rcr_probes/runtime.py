"""The contract between the harness and a runtime: Runtime, Operation, and loading one by name."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard, cast

from rcr_probes.errors import RuntimeUnusable, UnknownName, where
from rcr_probes.model import DEEPEST, Json, Known, Recorded, too_deep
from rcr_probes.vocabulary import AGAIN, BASELINE, FAULTS, POINTS, POLICIES, SAYS, Says

DESCRIPTION = ".toml"  # how the name of a file ends that describes a runtime
_DESCRIBED = "rcr_probes.runtimes.command:described"
_VARIANT = re.compile(r"[a-z]\w*", re.ASCII)


class Executor(Protocol):
    """What performs the action. It is the harness's, so the runtime owns neither ledger.

    Attributes:
        name: as a request's ``executor`` names it.
        declares: of ``lookup`` and ``replay``, those that another call with the same operation key
            can rely on, as it says itself (``vocabulary.CAPABILITIES``).
        effects: how many effects its action has.
    """

    name: str
    declares: tuple[str, ...]
    effects: int

    def raise_fence(self) -> int | None:
        """Where calls carry a fencing token: refuse every older attempt, and count what exists."""
        ...

    def __call__(self, operation_key: str, request: Mapping[str, Json], /) -> Mapping[str, Json]:
        """Perform the action of ``request`` and return evidence of it."""
        ...


class Askable(Executor, Protocol):
    """An executor that declares ``lookup``."""

    def look(self, key: str, /) -> Known:
        """What it knows of an operation's key. It calls nothing."""
        ...


def askable(executor: Executor) -> TypeGuard[Askable]:
    """Whether an executor can be asked about a key."""
    return "lookup" in executor.declares


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, as its caller hands it over.

    Attributes:
        key: stable over every attempt of this operation.
        request: what is asked for; in recovery, recomputed (docs/design.md §3, digest). Its
            ``executor`` is the name of the executor.
        folder: private to the runtime and this cell, and there before ``start``; holds what the
            runtime stores, and what a caller would keep between the attempts (its ticket).
        executor: what to call.
        variant: which of its configurations the runtime is to run in.
        attempt: the number of this attempt on the operation, from 1; 0 where it makes none.
        attempts: the folder of the fence (``rcr_probes.fence``), in which each attempt holds its
            own; there before ``start``.
        witness: the file in which a witness says what exists (``rcr_probes.witness``); it may be
            missing. Neither is for a runtime's own ways: they are what recovery by evidence reads.
    """

    key: str
    request: Mapping[str, Json]
    folder: Path
    executor: Executor
    variant: str = BASELINE
    attempt: int = 0
    attempts: Path | None = None
    witness: Path | None = None


class Refusal(Protocol):
    """The seam by which a runtime's own write of a result is made to fail."""

    def place(self) -> None:
        """Put it there; called in the process that reached the point."""
        ...

    def standing(self) -> bool:
        """Whether it is seen from outside, once the phase is over; cheap, and of files alone."""
        ...

    def lift(self) -> None:
        """Take it away, before recovery; cheap, and of files alone."""
        ...


class Runtime(Protocol):
    """A system under probe (docs/design.md §3)."""

    points: Mapping[str, frozenset[str]]
    """point → kinds of fault that it supports there."""
    recoveries: tuple[str, ...]
    """Its own documented ways to recover, by name."""
    says: Mapping[str, Says]
    """state → done, not_done, due or open, each from its documentation."""

    def start(self, operation: Operation) -> None:
        """The fault phase: do the operation. Raises what its caller would see."""
        ...

    def recover(self, operation: Operation, way: str) -> None:
        """In a new process: ``again`` or one of ``recoveries``. Raises what its caller sees."""
        ...

    def state(self, operation: Operation) -> Recorded:
        """What is stored. Writes nothing, reclassifies nothing."""
        ...

    # What follows may be left out; ``offered`` gives what then holds.
    #
    # variants: tuple[str, ...] = ("baseline",)
    #     Its configurations, by name: ``operation.variant`` is one of them.
    # versions: Callable[[], Mapping[str, str]]
    #     What it depends on, package or program → version: sealed with the captures.
    # state_at_points: bool = True
    #     False where asking for the state is costly, or would disturb a run: then it is asked only
    #     when nothing of the phase is alive, in a process of its own.
    # def refusal(self, operation: Operation) -> Refusal
    #     How its own write of the result is made to fail: the fault ``result_refused``.
    # def hosts(self, operation: Operation) -> Sequence[int]
    #     The pids of its long-lived processes, never the phase's own: the fault ``kill_host``. It
    #     is asked in the process that reached the point.
    # def damage(self, operation: Operation, kind: str) -> tuple[str | None, int | None]
    #     Put what it stored wrong, as recovery is to find it: the kinds of ``vocabulary.DAMAGE``.
    #     Where that is its audit, the audit's path and the number of whole lines that it has then.
    # def lock(self, operation: Operation) -> str
    #     The path of the lock file that its attempts hold, so that a stale one can be left there.
    # def decide(self, operation: Operation, effect: str) -> None
    #     Enter what a person found out after its recovery had stopped: ``present`` or ``absent``.
    # def files(self, operation: Operation) -> Mapping[str, str]
    #     Names that a plan can use for files whose own names no plan can know: name → the file's
    #     path in the operation's folder, known before ``start``. For system calls as points, and
    #     for what is told of a power loss.


def offered(runtime: Runtime, name: str) -> Any:
    """A part of the contract that a runtime may leave out; what holds then, where it does.

    Args:
        runtime: the runtime.
        name: ``variants``, ``versions``, ``state_at_points``, ``refusal``, ``hosts``, ``files``,
            ``damage``, ``lock`` or ``decide``.
    """
    return getattr(runtime, name, _LEFT_OUT[name])


_LEFT_OUT: Mapping[str, Any] = {
    "variants": (BASELINE,),
    "versions": dict,  # called, it is empty
    "state_at_points": True,
    "refusal": None,
    "hosts": None,
    "files": lambda operation: {},
    "damage": None,
    "lock": None,
    "decide": None,
}
# A kind of fault that needs a seam of the runtime, and the part of the contract that gives it.
SEAMS: Mapping[str, str] = {"result_refused": "refusal", "kill_host": "hosts"}


def load(name: str) -> Runtime:
    """The runtime that the factory ``package.module:factory`` makes.

    The current directory is importable. A name that ends with ``.toml`` is the path of a file that
    describes a runtime in any language: ``rcr_probes.runtimes.command`` makes it.

    Raises:
        RuntimeUnusable: no such module or factory, or what it makes does not keep the contract.
    """
    runtime = made(name)
    for wrong in _breaches(runtime):
        raise RuntimeUnusable(
            f"What {name!r} makes is no runtime: {wrong}.",
            "See docs/design.md, The contract of a runtime.",
        )
    return runtime


def made(name: str) -> Runtime:
    """The same for who knows that it keeps the contract, as far as that can be seen.

    Raises:
        RuntimeUnusable: no such module or factory.
    """
    described = name.endswith(DESCRIPTION)
    module_name, _, factory_name = (_DESCRIBED if described else name).partition(":")
    if not module_name or not factory_name:
        raise RuntimeUnusable(
            f"{name!r} does not name a runtime.",
            "Write it as package.module:factory, such as rcr_probes.reference:approval; a runtime "
            "in another language is named by the file that describes it, such as mine/runtime.toml "
            "(docs/own-runtime.md).",
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())  # last: a json.py that lies here is not the library's
    if module_name == "__main__":
        raise RuntimeUnusable(
            f"{name!r} lives in this session alone; a phase is a new process and cannot see it.",
            "In a notebook, put the class into a file with %%writefile my_runtime.py as the first "
            f"line of its cell, and name it my_runtime:{factory_name}.",
        )
    try:
        module = importlib.import_module(module_name)
        factory: Any = getattr(module, factory_name, None)
    except (Exception, SystemExit) as error:  # importing somebody's module may raise anything
        raise RuntimeUnusable(
            f"The runtime {name!r} cannot be loaded: {_told(error)}.",
            "Check its name; a module of your own must lie in the current directory or be "
            "installed (one written in a notebook cell needs %%writefile my_runtime.py).",
        ) from error
    if factory is None:
        own = [
            word
            for word, thing in vars(module).items()
            if callable(thing) and str(getattr(thing, "__module__", None)).startswith(module_name)
        ]
        raise RuntimeUnusable(
            f"The module {module_name!r} is there, but nothing in it is called {factory_name!r}.",
            UnknownName("factory", factory_name, own).remedy if own else "Define it there.",
        )
    try:
        return cast(Runtime, factory(name) if described else factory())
    except RuntimeUnusable:
        raise
    except (Exception, SystemExit) as error:
        raise RuntimeUnusable(
            f"The factory of {name!r} failed: {_told(error)}.",
            "It is called without arguments and returns a runtime.",
        ) from error


def _told(error: BaseException) -> str:
    """An error of somebody's module, and where in it that was."""
    place = where(error, called=1)
    return f"{type(error).__name__}: {error}" + (f" ({place})" if place else "")


def require_way(way: str, recoveries: Sequence[str]) -> None:
    """Refuse a way to recover that is neither ``again`` nor one of those that a runtime documents.

    Raises:
        UnknownName: no such way.
    """
    if way not in (AGAIN, *recoveries):
        raise UnknownName("way to recover", way, (AGAIN, *recoveries))


def _breaches(runtime: object) -> Iterator[str]:
    """What of the contract can be seen to be broken without running anything."""
    parts = ("points", "recoveries", "says", "start", "recover", "state")
    lacking = [part for part in parts if not hasattr(runtime, part)]
    if lacking:
        yield f"it lacks {', '.join(lacking)}"
        return
    made = cast(Runtime, runtime)
    try:
        words = [
            *(("point", point, POINTS) for point in made.points),
            *(("fault", kind, FAULTS) for kinds in made.points.values() for kind in kinds),
            *(("word of says", word, SAYS) for word in made.says.values()),
        ]
    except (AttributeError, TypeError) as error:
        yield f"points or says is no mapping ({error})"
        return
    for kind, word, known in words:
        if word not in known:
            yield f"{word!r} is no {kind} ({', '.join(known)})"
    ways: object = made.recoveries
    if isinstance(ways, str):
        yield f"recoveries is the text {ways!r}, not a tuple of names; write ({ways!r},)"
        return
    if not all(isinstance(way, str) for way in (*made.recoveries, *made.says)):
        yield "a state or a way to recover is not named by text"
    if not made.says:
        yield "says explains no state; name each that occurs, as done, not_done, due or open"
    for way in made.recoveries:
        if way in POLICIES:
            yield f"{way!r} is a way that every runtime has; leave it out of recoveries"
    variants = offered(made, "variants")
    if not isinstance(variants, tuple) or not all(
        isinstance(v, str) and _VARIANT.fullmatch(v) for v in variants
    ):
        yield f"variants is {variants!r}, not a tuple of words"
    elif not variants:
        yield f"variants is empty; leave it out where there is only {BASELINE!r}"
    for kind, names in {"recoveries": made.recoveries, "variants": variants}.items():
        if len(set(names)) != len(names):
            yield f"{kind} names one twice"
    for kind, seam in SEAMS.items():
        if any(kind in kinds for kinds in made.points.values()) and not offered(made, seam):
            yield f"it declares {kind!r}, but has no {seam}()"


def recorded(runtime: Runtime, operation: Operation) -> Recorded:
    """What the runtime has stored, once its shape is one that can be a fact.

    Raises:
        RuntimeUnusable: it is not.
        Exception: whatever the runtime's own ``state`` raises.
    """
    return factual(runtime.state(operation))


def factual(seen: object) -> Recorded:
    """What a runtime says that it has stored, where that can be a fact: in JSON's own shapes.

    Raises:
        RuntimeUnusable: it cannot (facts hold no floats, and their names are ASCII).
    """
    if type(seen) is not Recorded:
        raise RuntimeUnusable(f"state() returned {seen!r:.80}.", "Return a Recorded.")
    words: tuple[Any, ...] = (seen.execution, seen.approved_digest, seen.current_digest)
    if not _is_text(seen.status) or not all(w is None or _is_text(w) for w in words):
        raise RuntimeUnusable("Recorded holds a word that is no text.", "Use text, or None.")
    evidence: Any = () if seen.evidence is None else seen.evidence
    try:
        if not isinstance(evidence, tuple | list) or not all(
            isinstance(one, Mapping) for one in evidence
        ):
            raise TypeError("it is no list of maps")
        facts = tuple(map(_fact, evidence))
        if too_deep(facts):
            raise TypeError(f"it nests lists and maps more than {DEEPEST} deep")
        return replace(seen, evidence=facts)
    except (TypeError, RecursionError) as error:
        raise RuntimeUnusable(
            f"Recorded.evidence is nothing that can be a fact ({error}).",
            "Give maps with ASCII names, of text, whole numbers of 64 bits, booleans, None, lists "
            "and maps.",
        ) from error


def _fact(value: object) -> Json:
    """The same as it comes back from a file: a fact is compared with what was written of it.

    Raises:
        TypeError: it cannot be a fact.
    """
    if value is None or _is_text(value):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return value
    if isinstance(value, Mapping) and all(isinstance(k, str) and k.isascii() for k in value):
        return {name: _fact(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fact(inner) for inner in value]
    raise TypeError(f"{value!r:.40} is none")


def _is_text(value: object) -> bool:
    """Whether it is text that can be written: half of a surrogate pair cannot."""
    return isinstance(value, str) and (
        value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    )

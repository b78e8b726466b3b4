"""Whether an adapter keeps the contract of a runtime: run it, and say in plain words what is wrong.

Everything is found out by running cells, as a plan would; nothing is taken from the adapter's word.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rcr_probes import folder, linux, phase
from rcr_probes.evidence import write
from rcr_probes.model import Capture, Cell, Observation, Plan
from rcr_probes.run import DEADLINE, Progress, run
from rcr_probes.runtime import DESCRIPTION, Runtime, load, offered
from rcr_probes.scratch import scratch
from rcr_probes.vocabulary import AGAIN, AUDIT_FAULTS, FAULTS, NONE, POINTS, POWER_LOSSES

_CONTROL: dict[str, Any] = {"point": NONE, "fault": NONE}
_NAMED = 3  # cells that a finding names, of those that show it


@dataclass(frozen=True, slots=True)
class Result:
    """One rule of the contract, and what was found against it.

    Attributes:
        rule: what is asked of every runtime.
        wrong: each a sentence that says what is wrong, and what to do; empty where it is kept.
    """

    rule: str
    wrong: tuple[str, ...]


def conformance(
    name: str, *, deadline: float = DEADLINE, progress: Progress | None = None
) -> list[Result]:
    """Hold a runtime against its contract.

    Args:
        name: ``package.module:factory``, or the path of a ``.toml`` that describes a runtime.
        deadline: seconds for each phase.
        progress: called after each cell with how many are done, and how many there are.

    Raises:
        RuntimeUnusable: it cannot be loaded, or what is wrong can be seen without running it.
    """
    runtime = load(name)
    plan = Plan("conformance", tuple(_cells(name, runtime)))
    with scratch() as place:
        into = place / "evidence"
        evidence = run(plan, into, keep=True, deadline=deadline, progress=progress)
        captures = list(evidence.captures())
        kept = sorted(write.beside(into, ".cells").iterdir())
        looked = {rule: look(runtime, captures) for rule, look in _RULES.items()}
        fresh = place / "fresh"
        folder.make(str(fresh), plan.cells[0])
        looked[_STATE] = (
            sentence for cell in (kept[0], fresh) for sentence in _state(str(cell), deadline)
        )
        return [Result(rule, _told(found)) for rule, found in looked.items()]


def _told(found: Iterator[str]) -> tuple[str, ...]:
    """The first sentences of a rule; many are of one kind, and the rest are counted."""
    sentences = tuple(dict.fromkeys(found))
    more = len(sentences) - _NAMED
    return (*sentences[:_NAMED], f"(and {more} more like these)") if more > 0 else sentences


def _cells(name: str, runtime: Runtime) -> Iterator[Cell]:
    """Controls for each variant, digest and way; then each declared fault, without recovery."""
    variants = offered(runtime, "variants")
    for variant in variants:
        yield Cell(runtime=name, variant=variant, policy="never", **_CONTROL)
    for digest in ("changed", "reordered"):
        yield Cell(runtime=name, variant=variants[0], digest=digest, policy="never", **_CONTROL)
    for way in (AGAIN, *runtime.recoveries):
        yield Cell(runtime=name, variant=variants[0], policy=way, **_CONTROL)
    for variant in variants:
        for point in sorted(runtime.points, key=POINTS.index):
            for kind in sorted(runtime.points[point]):
                fault = f"{kind}#0" if kind in POWER_LOSSES else kind
                yield Cell(runtime=name, variant=variant, point=point, fault=fault, policy="never")


def _controls(captures: Sequence[Capture]) -> Iterator[tuple[Cell, Observation]]:
    """Each cell without a fault, as it stood after its first phase."""
    for capture in captures:
        first = capture.measurement.after("fault")
        if capture.cell.fault == NONE and first is not None:
            yield capture.cell, first


def _one_effect(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    for cell, first in _controls(captures):
        if cell.policy != "never" or cell.digest != "same":
            continue
        seen = len(first.effects or ())
        if first.error != NONE:
            yield (
                f"In {_short(cell)}, start() ended with {first.error}, and nothing was injected. "
                "Run the cell with --keep: harness/output.txt says where it came from."
            )
        elif (seen, first.calls) != (1, 1):
            yield (
                f"In {_short(cell)}, start() left {seen} effects of {first.calls} calls. "
                "Call operation.executor(operation.key, operation.request) once for an operation."
            )


def _faults_fire(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    """Each declared pair fires in one variant at least: not every variant has every point."""
    tried: dict[tuple[str, str], list[Capture]] = {}
    for capture in captures:
        if capture.cell.fault != NONE:
            tried.setdefault((capture.cell.point, capture.cell.fault), []).append(capture)
    for (point, _), cells in tried.items():
        if any(c.judgement.fired for c in cells):
            continue
        events = [e for c in cells for e in c.measurement.events]
        if not any(e.lane == "point" and e.value.get("point") == point for e in events):
            yield _not_reached(cells[0].cell)
        else:
            yield _no_hold(cells[0])


def _not_reached(cell: Cell) -> str:
    if cell.runtime.endswith(DESCRIPTION):
        return (
            f"The command never tells that it comes to the point {cell.point}, which is declared; "
            "or what tells it is not below the command, and is refused. Run RCR_REACH with that "
            "name there and wait for it, or do not declare it."
        )
    return (
        f"start() never reaches the point {cell.point}, which is declared. "
        f'Call reach("{cell.point}") there, or do not declare it.'
    )


def _no_hold(capture: Capture) -> str:
    """Why a fault that was injected is none, where nothing more is known than how it ended."""
    first, fault = capture.measurement.observations[0], capture.cell.fault
    if fault in AUDIT_FAULTS and FAULTS[fault] != NONE and first.standing:
        stood = "a directory" if fault == "audit_is_directory" else "something else"
        return (
            f"At {capture.cell.point}, {stood} stood in place of the audit file, so that the "
            f"append to it fails with {FAULTS[fault]}; but the caller saw {first.error}. Let "
            f"start() end with the code {FAULTS[fault]}: pass the OSError of the append on, or "
            f"answer that code. Where the runtime's caller cannot see it, do not declare {fault}."
        )
    return (
        f"At {capture.cell.point}, {fault} was injected and did not take hold: the phase ended by "
        f"{first.ended}, and its caller saw {first.error}. "
        "An adapter must neither catch what the fault raises nor survive it; "
        "a refusal must make the runtime's own write fail, and stand until it is lifted."
    )


def _faults_are_felt(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    """Nothing went on as if it had not been struck: as without a fault, and nobody tried again."""
    whole = {cell.variant: first.recorded.status for cell, first in _controls(captures)}
    for capture in captures:
        cell, first = capture.cell, capture.measurement.observations[0]
        # Once the result is stored, the end of the process that stored it need not be felt.
        if cell.fault not in _ADVICE or cell.point == "after_result" or not capture.judgement.fired:
            continue
        answered = (first.ended, first.error) == ("exit", NONE)
        if answered and first.recorded.status == whole[cell.variant] and not _tried_again(capture):
            yield (
                f"In {_short(cell)}, the {cell.fault} struck, and yet start() returned without an "
                f"error and left the state {first.recorded.status!r}, as it does without a fault. "
                + _ADVICE[cell.fault]
            )


_ADVICE = {
    "exception": "Do not catch what reach() raises, nor go on where RCR_REACH fails.",
    "kill": "The process that came to the point is gone; what lives on must tell its caller that "
    "the work was lost, or do it again. Tell each point in the process that does the work.",
}


def _tried_again(capture: Capture) -> bool:
    """Whether the runtime came to the struck point once more, or acted once more."""
    events = [e for e in capture.measurement.events if e.phase == "fault"]
    came = [e for e in events if (e.lane, e.value.get("point")) == ("point", capture.cell.point)]
    return len(came) > 1 or sum(e.lane == "call" for e in events) > 1


def _known_points(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    reached = {
        str(e.value.get("point"))
        for c in captures
        for e in c.measurement.events
        if e.lane in ("point", "fault")
    }
    for point in sorted(reached - set(runtime.points)):
        known = f"Known points: {', '.join(POINTS)}." if point not in POINTS else "Declare it too."
        yield f"start() reaches the point {point}, which is not declared. {known}"


def _says_all(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for capture in captures:
        for event in capture.measurement.events:
            if event.lane == "state" and "error" not in event.value:
                seen.setdefault(str(event.value["status"]), _short(capture.cell))
    for status, where in sorted(seen.items()):
        if status not in runtime.says:
            yield (
                f"The state {status!r} occurs ({where}), and says does not know it. "
                "Add it with done, not_done, due or open: what is documented of the effect."
            )


def _readable(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    for capture in captures:
        for observed in capture.measurement.observations:
            for damage in observed.damage:
                if damage.startswith(("record:", "harness:")):
                    yield (
                        f"After {observed.after} in {_short(capture.cell)}, {damage}. "
                        "state() must return a Recorded of what is stored, at any time, also when "
                        "nothing is; harness/output.txt of the kept cell says where it failed."
                    )


def _ends(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    for capture in captures:
        for observed in capture.measurement.observations:
            where = f"the {observed.after} phase of {_short(capture.cell)}"
            if observed.ended == "deadline":
                yield (
                    f"{where.capitalize()} did not end in time. Wait for a state and give up after "
                    "a bound, or raise --deadline."
                )
            elif any(d.startswith("processes:") for d in observed.damage):
                yield (
                    f"{where.capitalize()} left processes behind. Before start() and recover() "
                    "return or raise, end every process that they started, and wait for it."
                )


def _own_processes(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    for capture in captures:
        pids = list(capture.circumstances.pids.values())
        if len({*pids, capture.circumstances.parent}) != len(pids) + 1:
            yield f"In {_short(capture.cell)}, two phases ran in one process."


def _ways(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    mistakes = ("TypeError", "AttributeError", "NameError", "NotImplementedError", "UnknownName")
    for capture in captures:
        last = capture.measurement.after("recover")
        if last is not None and last.error in mistakes:
            yield (
                f"recover() by {capture.cell.policy!r} ended with {last.error}. It must know "
                "`again` and every way in recoveries; what it raises is what a caller would see."
            )


def _digests(runtime: Runtime, captures: Sequence[Capture]) -> Iterator[str]:
    """Where the runtime keeps a digest of what was approved, it sees the meaning and no more."""
    for cell, first in _controls(captures):
        approved, current = first.recorded.approved_digest, first.recorded.current_digest
        if approved is None or current is None:
            continue
        if (approved == current) == (cell.digest == "changed"):
            yield {
                "changed": "A request with another target has the digest of the approved one.",
                "reordered": "The same request in another order of keys has another digest.",
            }.get(cell.digest, "The same request, in a new session, has another digest.") + (
                " Compute it over sorted keys, without session_id."
            )


def _short(cell: Cell) -> str:
    """A cell's id, without what all cells of the run have in common."""
    return cell.id.replace(f"/runtime={cell.runtime}", "")


_RULES: dict[str, Callable[[Runtime, Sequence[Capture]], Iterator[str]]] = {
    "without a fault, there is exactly one effect of one call": _one_effect,
    "every declared point is reached, and its faults take hold": _faults_fire,
    "what a fault struck does not go on as if nothing had been": _faults_are_felt,
    "every point that is reached is declared": _known_points,
    "every way to recover can be called": _ways,
    "every phase is a process of its own": _own_processes,
    "every phase ends, and leaves no process behind": _ends,
    "the stored state can always be read": _readable,
    "every state that occurs is declared in says": _says_all,
    "a stored digest sees what a request means, and no more": _digests,
}
_STATE = "asking for the state writes nothing"


def _state(place: str, deadline: float) -> Iterator[str]:
    """Ask in the folder of a cell that is over, or of one that never began: what changed there?"""
    private = os.path.join(place, folder.RUNTIME)
    before = _contents(private)
    words = [sys.executable, "-P", "-m", phase.__name__, place, f"{phase.STATE}recover"]
    asked = subprocess.Popen(
        [*words, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        status = asked.wait(deadline)
        ended = f"with the exit status {status}" if status else ""
    except subprocess.TimeoutExpired:
        ended = "at the deadline"
    finally:
        if asked.poll() is None:
            linux.kill_with_all_below(asked.pid)
            asked.wait()
    after = _contents(private)
    changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    if ended:
        yield f"state() ended its process {ended}. Let it return what is stored."
    if changed:
        yield (
            f"state() changed {', '.join(changed[:_NAMED])} in the operation's folder. Open what "
            "is stored for reading alone; a server that is needed for it gets a copy of its files."
        )


def _contents(place: str) -> dict[str, str]:
    """Path in the folder → digest of what lies there, and when it was written."""
    found = {}
    for parent, _, files in os.walk(place):
        for file in files:
            path = os.path.join(parent, file)
            if os.path.isfile(path):
                with open(path, "rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
                found[os.path.relpath(path, place)] = f"{digest} {os.stat(path).st_mtime_ns}"
    return found

"""Whether one capture agrees with itself: origin, cell, processes, judgement, and its course."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial

from rcr_probes import possible, recoverable, strace
from rcr_probes.evidence import (
    course,
    executed,
    lanes,
    of_reference,
    outages,
    received,
    recovered,
)
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.form import facts_sha256
from rcr_probes.model import Capture, Cell, Judgement, Measurement, Verdict, canonical_json
from rcr_probes.request import approved
from rcr_probes.vocabulary import (
    AGAIN,
    BASELINE,
    EVIDENCE_GATED,
    FAULTS,
    FENCED,
    NONE,
    POLICIES,
    POWER_LOSSES,
    RECEIVER_FAULTS,
    RECEIVER_KEY,
    REFERENCE,
    STARTS,
    TRACED_FAULTS,
    WORKER,
    recovery_phases,
)

PUBLISHED = "published:"  # how the runtime of a row that others published is named

# What is known of one runtime: what the reference declares, what a probe does to a worker.
_OF: Mapping[str, Mapping[str, tuple[str | int, ...]]] = {
    REFERENCE: {
        "fault": tuple(
            fault
            for fault in (NONE, *FAULTS, *RECEIVER_FAULTS)
            if fault not in ("kill_host", "result_refused")
        ),
        "policy": (*POLICIES, "resume", EVIDENCE_GATED),
        "variant": (BASELINE, "fsync", "meaning_digest", FENCED),
    },
    WORKER: {
        "fault": (NONE, "kill", *RECEIVER_FAULTS),
        "dedupe": (RECEIVER_KEY,),
        "digest": ("same",),
        "policy": (AGAIN, "recover"),
        "seed": (0,),
    },
}
_WORKER_POINTS = (NONE, "before_action", "after_action")
LARGEST_PID = 2**22  # of Linux
# What a run writes where its judge broke over a measurement.
_NOT_JUDGED = Judgement(verdict=Verdict("unknown", ("judge_failed",)))


def problems(capture: Capture) -> Iterator[str]:
    """Every reason, in one sentence each, why no run and no import wrote this capture."""
    return (problem for _, problem in found(capture))


def found(capture: Capture) -> Iterator[tuple[str, str]]:
    """The same, each after the name of the look that found it."""
    measured = capture.measurement
    looks = [(name, partial(look, capture)) for name, look in _LOOKS.items()]
    for module in _modules(measured):
        looks += [(name, partial(look, measured)) for name, look in module.items()]
    for name, look in looks:
        try:
            yield from ((name, problem) for problem in look())
        except Exception as error:  # bad evidence may hold anything; it never ends the check
            yield "examined", f"it cannot be examined: {type(error).__name__}: {error}."


def _modules(measured: Measurement) -> Iterator[course.Looks]:
    """What a measurement is held against: what holds of every one, and of its own runtime."""
    yield from (lanes.LOOKS, course.LOOKS, executed.LOOKS, outages.LOOKS, recovered.LOOKS)
    if measured.cell.runtime == REFERENCE and course.ran(measured):
        yield of_reference.LOOKS
    if measured.cell.runtime == WORKER and not measured.published:
        yield received.LOOKS


def _origin(capture: Capture) -> Iterator[str]:
    """A row says three times whether it was measured, and all three must agree.

    So none of them can be changed to keep a measured row from being judged.
    """
    measured = capture.measurement
    here = not measured.published
    if here != (measured.forced is not None):
        yield f"its source is {measured.source!r}, " + (
            "but no forced call is in it." if here else "but a forced call is in it."
        )
    if here == measured.cell.runtime.startswith(PUBLISHED):
        yield f"its source is {measured.source!r}, but its runtime {measured.cell.runtime!r}."
    if here and measured.published_verdict is not None:
        yield "it was measured, but carries a published verdict."


def _cell(capture: Capture) -> Iterator[str]:
    """What no plan would let through; a row that others published may leave out what it must not.

    Nor were they at a system call: these are points of our own.
    """
    cell, here = capture.cell, not capture.measurement.published
    unknown = [(kind, name) for kind, name, _ in possible.unknown(cell)]
    if not here and "@" in cell.point:
        unknown.append(("point", cell.point))
    yield from (f"its {kind} is {name!r}, which nothing knows." for kind, name in unknown)
    if not unknown:
        yield from (f"no plan allows it: {cause}" for cause, _ in possible.problems(cell))
    if here:
        yield from (f"no plan allows it: {cause}" for cause, _ in recoverable.problems(cell))
        yield from _whole(cell)
        yield from _of_runtime(cell)


def _whole(cell: Cell) -> Iterator[str]:
    """What every cell says that was run."""
    for field in fields(Cell):
        if getattr(cell, field.name) is None:
            yield f"it was measured, but its {field.name} is null."
    for axis in ("seed", "repeat"):
        if not 0 <= (getattr(cell, axis) or 0) <= possible.LARGEST:
            yield f"its {axis} is {getattr(cell, axis)}, which no plan allows."
    module, _, factory = cell.runtime.partition(":")
    if not ((module and factory) or cell.runtime.endswith(".toml") or cell.runtime == WORKER):
        yield f"its runtime is {cell.runtime!r}, which names none."
    if not (cell.variant or "").isidentifier():
        yield f"its variant is {cell.variant!r}, which is no word."


def _of_runtime(cell: Cell) -> Iterator[str]:
    """What its own runtime does not have."""
    for axis, has in _OF.get(cell.runtime, {}).items():
        value = getattr(cell, axis)
        if (cell.kind if axis == "fault" else value) not in has:
            yield f"its {axis} is {value!r}, which the runtime {cell.runtime!r} does not have."
    if cell.runtime != WORKER:
        return
    if strace.parse(cell.point) is None and cell.point not in _WORKER_POINTS:
        yield f"its point is {cell.point!r}, which no receiver sees."
    if strace.parse(cell.point) is not None and cell.fault != "kill":
        yield f"its fault {cell.fault!r} does not strike at a worker's call."
    if received.nth(cell) is None:
        yield f"its variant is {cell.variant!r}, which names no request to strike at."
    if cell.repeat not in ((0, 1) if cell.point == NONE else (0,)):
        yield f"its repeat is {cell.repeat}, though only the control is run twice."


def _approved(capture: Capture) -> Iterator[str]:
    """A measured operation was allowed what its cell asks for, and nothing else."""
    measured = capture.measurement
    asked = approved(measured.cell)
    if measured.cell.runtime == WORKER:  # how many effects it makes, its control says
        asked = replace(asked, effects=max(1, measured.approved.effects))
    if not measured.published and measured.approved != asked:
        yield (
            f"it says that {_shown(measured.approved)} was approved, "
            f"but its cell asks for {_shown(asked)}."
        )


def _processes(capture: Capture) -> Iterator[str]:
    circumstances, measured = capture.circumstances, capture.measurement
    pids, seconds = circumstances.pids, circumstances.seconds
    if measured.published:
        if circumstances.start or circumstances.parent or pids or seconds:
            yield "it was published by others, but carries processes of a run."
        return
    if circumstances.start not in STARTS:
        yield f"its start method is {circumstances.start!r}, neither fork nor spawn."
    called = strace.parse(capture.cell.point) is not None
    new = capture.cell.runtime == WORKER or (called and capture.cell.fault not in TRACED_FAULTS)
    new = new or capture.cell.kind in POWER_LOSSES
    if new and circumstances.start != "spawn":
        yield f"its start method is {circumstances.start!r}, but a command or strace is spawned."
    every = [*pids.values(), circumstances.parent]
    if any(pid is None or not 0 < pid <= LARGEST_PID for pid in every):
        yield "a process id in it is missing, or is none."
    if len(set(every)) != len(every):
        yield "two of its processes have the same pid, though each phase is a process of its own."
    if pids.keys() != seconds.keys() or any(took < 0 for took in seconds.values()):
        yield "its times do not belong to its processes."
    recovery = recovery_phases(capture.cell.policy, capture.cell.recovery_fault)
    wanted = {"fault", "force", *recovery}
    perhaps = {"decide", *(("recover_2",) if measured.cell.recoverers == 2 else ())}
    missing = sorted(wanted - perhaps - pids.keys())
    added = sorted(pids.keys() - wanted)
    if missing and not course.harness_broke(measured):
        yield f"no process is recorded for its phase {' and '.join(missing)}."
    if added:
        yield f"a process is recorded for {' and '.join(added)}, which the cell does not have."


def _judgement(capture: Capture) -> Iterator[str]:
    stored = capture.judgement
    try:
        derived = derive(capture.measurement)
    except Exception as error:
        if stored != _NOT_JUDGED:
            yield f"no judgement follows from what it measured ({type(error).__name__}: {error})."
        return
    for field in fields(Judgement):
        given, follows = getattr(stored, field.name), getattr(derived, field.name)
        if given != follows:
            yield (
                f"its {field.name} does not follow from what it measured: "
                f"it says {_shown(given)}, but {_shown(follows)} follows."
            )


def _digest(capture: Capture) -> Iterator[str]:
    computed = facts_sha256(capture.measurement, capture.judgement)
    if computed != capture.facts_sha256:
        yield f"its facts were changed: facts_sha256 is not theirs, which is {computed}."


def _shown(value: object) -> str:
    return canonical_json(value).decode()


_LOOKS: Mapping[str, Callable[[Capture], Iterator[str]]] = {
    "origin": _origin,
    "cell": _cell,
    "approved": _approved,
    "processes": _processes,
    "judgement": _judgement,
    "digest": _digest,
}

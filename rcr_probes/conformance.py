"""Whether an adapter keeps the contract of a runtime: run it, and find what is wrong.

Everything is found out by running cells, as a plan would; nothing is taken from the adapter's word.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rcr_probes import folder, linux, phase
from rcr_probes.evidence import write
from rcr_probes.evidence.check import Speak
from rcr_probes.model import Capture, Cell, Observation, Plan
from rcr_probes.run import DEADLINE, Progress, run
from rcr_probes.runtime import DESCRIPTION, Runtime, load, offered
from rcr_probes.scratch import scratch
from rcr_probes.vocabulary import AGAIN, AUDIT_FAULTS, FAULTS, NONE, POINTS, POWER_LOSSES, SAYS

_CONTROL: dict[str, Any] = {"point": NONE, "fault": NONE}
_NAMED = 3  # sentences of a rule, and files of a sentence
_ORIGIN = re.compile(r"^(\w+): (.*:\d+\))$", re.MULTILINE)  # as a phase tells of an error


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: of thing; the text ``conformance.finding.KIND`` says it, and what to do, in each
            language.
        values: what that text is filled with.
    """

    kind: str
    values: Mapping[str, object]

    def said(self, speak: Speak) -> str:
        """What is wrong and what to do, in the language of ``speak``."""
        values = dict(self.values)
        if "after" in values:
            values["phase"] = speak(f"explain.{values['after']}")
        if not values.get("origin", True):
            values["origin"] = speak("conformance.silent")
        return speak(f"conformance.finding.{self.kind}", **values)


@dataclass(frozen=True, slots=True)
class Result:
    """One rule of the contract, and what was found against it.

    Attributes:
        rule: what is asked of every runtime; the text ``conformance.rule.RULE`` says it.
        wrong: empty where it is kept.
    """

    rule: str
    wrong: tuple[Finding, ...]

    def lines(self, speak: Speak) -> Iterator[str]:
        """Whether it is kept, and the first things that are wrong; the rest is counted."""
        kept = speak(f"conformance.{'wrong' if self.wrong else 'kept'}")
        yield f"{kept}  {speak(f'conformance.rule.{self.rule}')}"
        said = dict.fromkeys(finding.said(speak) for finding in self.wrong)  # many are of one kind
        yield from (f"       {sentence}" for sentence in [*said][:_NAMED])
        if (more := len(said) - _NAMED) > 0:
            yield f"       {speak('conformance.more', more=more)}"


class _Ran(NamedTuple):
    """One cell that was run, and what its phases printed: errors, and where these came from."""

    capture: Capture
    output: str


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
        kept = sorted(write.beside(into, ".cells").iterdir())
        ran = [_Ran(*one) for one in zip(evidence.captures(), map(_output, kept), strict=True)]
        looked = {rule: look(runtime, ran) for rule, look in _RULES.items()}
        fresh = place / "fresh"
        folder.make(str(fresh), plan.cells[0])
        looked["asking"] = (
            finding for cell in (kept[0], fresh) for finding in _asking(str(cell), deadline)
        )
        return [Result(rule, tuple(found)) for rule, found in looked.items()]


def _output(place: Path) -> str:
    return (place / folder.OUTPUT).read_text(encoding="utf-8", errors="replace")


def _origin(output: str, error: str, *, last: bool = False) -> str:
    """What a phase told of an error, and where it came from; empty where none did."""
    told = _ORIGIN.findall(output)
    named = [said for kind, said in told if kind == error] or [said for _, said in told]
    return named[-1 if last else 0] if named else ""


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


def _controls(ran: Sequence[_Ran]) -> Iterator[tuple[Cell, Observation, str]]:
    """Each cell without a fault, as it stood after its first phase."""
    for capture, output in ran:
        first = capture.measurement.after("fault")
        if capture.cell.fault == NONE and first is not None:
            yield capture.cell, first, output


def _one_effect(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    for cell, first, output in _controls(ran):
        if cell.policy != "never" or cell.digest != "same":
            continue
        seen, where = len(first.effects or ()), _short(cell)
        if first.error is not None and first.error != NONE:
            origin = _origin(output, first.error)
            yield Finding("failed", {"cell": where, "error": first.error, "origin": origin})
        elif (seen, first.calls) != (1, 1):
            yield Finding("effects", {"cell": where, "effects": seen, "calls": first.calls})


def _faults_fire(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    """Each declared pair fires in one variant at least: not every variant has every point."""
    tried: dict[tuple[str, str], list[Capture]] = {}
    for capture, _ in ran:
        if capture.cell.fault != NONE:
            tried.setdefault((capture.cell.point, capture.cell.fault), []).append(capture)
    for (point, _), cells in tried.items():
        if any(c.judgement.fired for c in cells):
            continue
        events = [e for c in cells for e in c.measurement.events]
        if any(e.lane == "point" and e.value.get("point") == point for e in events):
            yield _no_hold(cells[0])
        elif cells[0].cell.runtime.endswith(DESCRIPTION):
            yield Finding("never_told", {"point": point})
        else:
            yield Finding("never_reached", {"point": point})


def _no_hold(capture: Capture) -> Finding:
    """Why a fault that was injected is none, where nothing more is known than how it ended."""
    first, fault = capture.measurement.observations[0], capture.cell.fault
    values = {"point": capture.cell.point, "fault": fault, "error": first.error}
    if fault in AUDIT_FAULTS and FAULTS[fault] != NONE and first.standing:
        stood = "directory_stood" if fault == "audit_is_directory" else "something_stood"
        return Finding(stood, {**values, "code": FAULTS[fault]})
    return Finding("no_hold", {**values, "ended": first.ended})


def _faults_are_felt(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    """Nothing went on as if it had not been struck: as without a fault, and nobody tried again."""
    whole = {cell.variant: first.recorded.status for cell, first, _ in _controls(ran)}
    for capture, _ in ran:
        cell, first = capture.cell, capture.measurement.observations[0]
        # Once the result is stored, the end of the process that stored it need not be felt.
        if cell.fault not in _FELT or cell.point == "after_result" or not capture.judgement.fired:
            continue
        state, answered = first.recorded.status, (first.ended, first.error) == ("exit", NONE)
        if answered and state == whole[cell.variant] and not _tried_again(capture):
            values = {"cell": _short(cell), "fault": cell.fault, "state": state}
            yield Finding(f"unfelt_{cell.fault}", values)


_FELT = ("exception", "kill")


def _tried_again(capture: Capture) -> bool:
    """Whether the runtime came to the struck point once more, or acted once more."""
    events = [e for e in capture.measurement.events if e.phase == "fault"]
    came = [e for e in events if (e.lane, e.value.get("point")) == ("point", capture.cell.point)]
    return len(came) > 1 or sum(e.lane == "call" for e in events) > 1


def _known_points(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    reached = {
        str(e.value.get("point"))
        for capture, _ in ran
        for e in capture.measurement.events
        if e.lane in ("point", "fault")
    }
    for point in sorted(reached - set(runtime.points)):
        kind = "undeclared" if point in POINTS else "unknown_point"
        yield Finding(kind, {"point": point, "known": ", ".join(POINTS)})


def _says_all(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for capture, _ in ran:
        for event in capture.measurement.events:
            if event.lane == "state" and "error" not in event.value:
                seen.setdefault(str(event.value["status"]), _short(capture.cell))
    for status, where in sorted(seen.items()):
        if status not in runtime.says:
            values = {"state": status, "cell": where, "words": ", ".join(SAYS)}
            yield Finding("unexplained", values)


def _readable(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    for capture, output in ran:
        for observed in capture.measurement.observations:
            for damage in observed.damage:
                if damage.startswith(("record:", "harness:")):
                    values = {"after": observed.after, "cell": _short(capture.cell)}
                    origin = _origin(output, damage.rpartition(" ")[2].strip("()."))
                    yield Finding("unreadable", {**values, "damage": damage, "origin": origin})


def _ends(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    for capture, _ in ran:
        for observed in capture.measurement.observations:
            values = {"after": observed.after, "cell": _short(capture.cell)}
            if observed.ended == "deadline":
                yield Finding("overran", values)
            elif any(d.startswith("processes:") for d in observed.damage):
                yield Finding("left_behind", values)


def _own_processes(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    for capture, _ in ran:
        pids = list(capture.circumstances.pids.values())
        if len({*pids, capture.circumstances.parent}) != len(pids) + 1:
            yield Finding("one_process", {"cell": _short(capture.cell)})


def _ways(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    mistakes = ("TypeError", "AttributeError", "NameError", "NotImplementedError", "UnknownName")
    for capture, output in ran:
        last = capture.measurement.after("recover")
        if last is not None and last.error in mistakes:
            origin = _origin(output, last.error, last=True)
            way = capture.cell.policy
            yield Finding("way", {"way": way, "error": last.error, "origin": origin})


def _digests(runtime: Runtime, ran: Sequence[_Ran]) -> Iterator[Finding]:
    """Where the runtime keeps a digest of what was approved, it sees the meaning and no more."""
    for cell, first, _ in _controls(ran):
        approved, current = first.recorded.approved_digest, first.recorded.current_digest
        if approved is None or current is None:
            continue
        if (approved == current) == (cell.digest == "changed"):
            yield Finding(f"digest_{cell.digest}", {})


def _short(cell: Cell) -> str:
    """A cell's id, without what all cells of the run have in common."""
    return cell.id.replace(f"/runtime={cell.runtime}", "")


_RULES: Mapping[str, Callable[[Runtime, Sequence[_Ran]], Iterator[Finding]]] = {
    "one_effect": _one_effect,
    "faults_fire": _faults_fire,
    "faults_are_felt": _faults_are_felt,
    "known_points": _known_points,
    "ways": _ways,
    "own_processes": _own_processes,
    "ends": _ends,
    "readable": _readable,
    "says_all": _says_all,
    "digests": _digests,
}


def _asking(place: str, deadline: float) -> Iterator[Finding]:
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
        ended = Finding("asking_ended", {"status": status}) if status else None
    except subprocess.TimeoutExpired:
        ended = Finding("asking_overran", {})
    finally:
        if asked.poll() is None:
            linux.kill_with_all_below(asked.pid)
            asked.wait()
    after = _contents(private)
    changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    if ended is not None:
        yield ended
    if changed:
        yield Finding("asking_wrote", {"files": ", ".join(changed[:_NAMED])})


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

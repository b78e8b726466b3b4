"""What the article's other systems did: each audit-failure policy, the drain, a lost response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Json, Observation
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import AGAIN, NONE

POLICIES = "rcr_probes.contrast.policies:runtime"
DRAIN = "rcr_probes.contrast.drain:runtime"
SUBMISSION = "rcr_probes.contrast.submission:runtime"

# How an operation under an audit-failure policy was struck → its fault, and its point where another
# point has the same fault. The audit is refused before the action where it comes first.
STRUCK: Mapping[str, tuple[str, str | None]] = {
    "audit_refused": ("result_refused", None),
    "killed_after": ("kill", "after_action"),
    "killed_before": ("kill", "before_action"),
    "killed_stored": ("kill", "after_result"),
    "action_failed": ("exception", "before_action"),
}
_KILLED = "SIGKILL"
_ON = "on"
_CHANGED = "changed"  # the event of the audit that says that the change was made

_OUTCOME = (
    "audit_policy",
    "effect_kind",
    "caller_sees",
    "state_after_fault",
    "setting",
    "effects",
    "audit_rows",
    "again_sees",
    "again_effects",
    "again_audit_rows",
    "verdict",
)
_DRAIN = (
    "variant",
    "point",
    "fault",
    "caller_sees",
    "hold",
    "audit_rows",
    "audit_last",
    "published",
    "log",
    "again_sees",
    "again_published",
    "verdict",
)
_RESPONSE = (
    "memory",
    "point",
    "fault",
    "dedupe",
    "digest",
    "state_after_fault",
    "objects",
    "again_is",
    "again_objects",
    "verdict",
    "eligibility",
)
_COUNTS = (
    "effects", "audit_rows", "again_effects", "again_audit_rows", "published", "again_published",
    "objects", "again_objects",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """What one observation saw of such a system.

    Attributes:
        error: what the caller saw; None where no phase ran.
        effects: how many effects there were, outside.
        calls: how many calls of the executor.
        kept: what the system kept: the setting, or the drain.
        audit: the rows of its audit, in their order.
        log: what it noted in its log.
        effects_read: whether the effects could be read; else ``effects`` is 0, and means nothing.
        kept_read: the same of what the system kept, its audit and its log.
    """

    error: str | None
    effects: int
    calls: int
    kept: Mapping[str, Json]
    audit: tuple[Mapping[str, Json], ...]
    log: tuple[str, ...]
    effects_read: bool = True
    kept_read: bool = True

    @property
    def done(self) -> bool:
        """Whether something was done: the setting is on, or there is an effect."""
        return self.kept.get("setting") == _ON or self.effects > 0

    @property
    def told(self) -> bool:
        """Whether the audit says that it was done."""
        return any(row["audit"] == _CHANGED for row in self.audit)


def seen(observed: Observation) -> Seen:
    """The same observation in the words of these systems."""
    evidence = observed.recorded.evidence or ()
    return Seen(
        error=observed.error,
        effects=len(observed.effects or ()),
        calls=observed.calls or 0,
        kept=next((one for one in evidence if "setting" in one or "drain" in one), {}),
        audit=tuple(one for one in evidence if "audit" in one),
        log=tuple(str(one["log"]) for one in evidence if "log" in one),
        effects_read=observed.effects is not None,
        kept_read=observed.recorded.evidence is not None,
    )


def outcomes(
    evidence: Evidence, lang: str = "en", *, struck: str = "audit_refused"
) -> pd.DataFrame:
    """An operation under each audit-failure policy, with an effect of either kind, struck alike.

    Args:
        evidence: of the plan ``contrast``.
        lang: ``en`` or ``zh``.
        struck: of ``STRUCK``.

    Returns:
        A row for each policy and kind of effect; columns policy, kind, what the caller saw, the
        state, the setting, effects and audit rows after the fault; what the caller saw who
        submitted the operation again in a new process, effects and audit rows then, the verdict.

    Raises:
        EvidenceError: it has no such cells.
    """
    fault, point = STRUCK[struck]
    rows = []
    for capture in captures_of(evidence, POLICIES):
        cell = capture.cell
        chosen = (cell.fault, cell.policy, cell.dedupe) == (fault, AGAIN, NONE)
        if not chosen or point not in (None, cell.point):
            continue
        first, last = (seen(one) for one in capture.measurement.observations)
        policy, kind = parts(capture)
        values = (
            text(f"audit_policy.{policy}", lang),
            text(f"effect_kind.{kind}", lang),
            _saw(first.error, lang),
            capture.measurement.observations[0].recorded.status,
            first.kept.get("setting"),
            *_counted(first),
            _saw(last.error, lang),
            *_counted(last),
            _verdict(capture, lang),
        )
        rows.append((place(policy), values))
    rows.sort(key=lambda one: one[0])
    return frame([values for _, values in rows], _OUTCOME, lang)


def drains(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The drain and its successor: what stood after the fault, and what starting again did.

    Returns:
        A row for each variant and fault; columns variant, point, fault, what the caller saw, whose
        hold stood, audit rows, what the last one says, whether its activity was published, what
        the log notes, what the caller saw who started again, what was published then, the verdict.

    Raises:
        EvidenceError: it has no such cells.
    """
    rows = []
    for capture in _whole(evidence, DRAIN):
        first, last = (seen(one) for one in capture.measurement.observations)
        values = (
            text(f"drain_variant.{capture.cell.variant}", lang),
            *_struck(capture),
            _saw(first.error, lang),
            _hold(first, lang),
            _counted(first)[1],
            first.audit[-1]["audit"] if first.audit else None,
            _counted(first)[0],
            ", ".join(first.log) or None,
            _saw(last.error, lang),
            _counted(last)[0],
            _verdict(capture, lang),
        )
        rows.append(values)
    return frame(rows, _DRAIN, lang)


def responses(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """A submission whose answer is lost, or whose server died, and what sending it again did.

    Returns:
        A row for each cell; columns what the server remembers, point, fault, dedupe, digest, the
        state and the objects after the fault, what became of sending it again to a new process,
        the objects then, the verdict, what the evidence after the fault allowed.

    Raises:
        EvidenceError: it has no such cells.
    """
    rows = []
    for capture in _whole(evidence, SUBMISSION):
        first, last = (seen(one) for one in capture.measurement.observations)
        decision = capture.judgement.decision
        values = (
            text(f"submission_memory.{capture.cell.variant}", lang),
            *_struck(capture),
            capture.cell.dedupe,
            capture.cell.digest,
            capture.measurement.observations[0].recorded.status,
            _counted(first)[0],
            _again(first, last, lang),
            _counted(last)[0],
            _verdict(capture, lang),
            text(f"eligibility.{decision.eligibility}", lang) if decision else None,
        )
        rows.append(values)
    return frame(rows, _RESPONSE, lang)


def _again(first: Seen, last: Seen, lang: str) -> str | None:
    """What became of what was sent again; None where nothing was."""
    if last.error is None:
        return None
    if last.error != NONE:
        return last.error
    return text(f"contrast.{'executed' if last.calls > first.calls else 'replayed'}", lang)


def _saw(error: str | None, lang: str) -> str | None:
    """What the caller saw, in words where it saw no error, or nothing at all any more."""
    if error == NONE:
        return text("figure.no_error", lang)
    return text("contrast.killed", lang) if error == _KILLED else error


def _counted(one: Seen) -> tuple[int | None, int | None]:
    """How many effects, and rows of the audit; None for what could not be read."""
    return (one.effects if one.effects_read else None, len(one.audit) if one.kept_read else None)


def _hold(one: Seen, lang: str) -> str | None:
    """Whose hold stands, if any; None where it could not be read."""
    if not one.kept_read:
        return None
    by = one.kept.get("by")
    word = "stands" if one.kept.get("drain") == "draining" else "none"
    return text(f"contrast.hold_{word}_{by}", lang) if by else text("contrast.hold_none", lang)


def captures_of(evidence: Evidence, runtime: str) -> Iterator[Capture]:
    """Those of one of these systems."""
    return (one for one in evidence.captures() if one.cell.runtime == runtime)


def _whole(evidence: Evidence, runtime: str) -> Iterator[Capture]:
    """Of each cell the capture in which it was tried again; the one without, where none was."""
    every = list(captures_of(evidence, runtime))
    tried = {_but_policy(one) for one in every if one.cell.policy == AGAIN}
    return (c for c in every if c.cell.policy == AGAIN or _but_policy(c) not in tried)


def _but_policy(capture: Capture) -> tuple[object, ...]:
    cell = capture.cell
    return (cell.variant, cell.point, cell.fault, cell.dedupe, cell.digest)


def parts(capture: Capture) -> tuple[str, str]:
    """The policy and the kind of effect of a variant."""
    policy, _, kind = (capture.cell.variant or "").rpartition("_")
    return policy, kind


def place(policy: str) -> int:
    """The order of the article, and of what it cites."""
    known = ("shared_catch", "side_path", "rollback", "audit_first", "fail_closed")
    return known.index(policy) if policy in known else len(known)


def _struck(capture: Capture) -> tuple[str, str]:
    return capture.cell.point, capture.cell.fault


def _verdict(capture: Capture, lang: str) -> str | None:
    found = capture.judgement.verdict
    return text(f"verdict.{found.verdict}", lang) if found else None


def frame(rows: Sequence[Sequence[object]], columns: Sequence[str], lang: str) -> pd.DataFrame:
    """The table of these rows, its columns named in a language.

    Raises:
        EvidenceError: there are none.
    """
    if not rows:
        raise EvidenceError(CAPTURES, "holds no such cells.", "Run the plan contrast.")
    made = pd.DataFrame(rows, columns=list(columns))
    made = made.astype({one: "Int64" if one in _COUNTS else "string" for one in columns})
    return made.rename(columns=lambda name: text(f"column.{name}", lang))

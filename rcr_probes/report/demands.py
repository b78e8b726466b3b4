"""What may be asked of an audit-failure policy, and which of it each one kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture
from rcr_probes.report.audit_policies import (
    POLICIES,
    STRUCK,
    Seen,
    captures_of,
    frame,
    parts,
    place,
    seen,
)
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import AGAIN, NONE, VerdictName

_WORDS: Mapping[bool | None, str] = {True: "yes", False: "no", None: "unknown"}


def _goes_on(captures: Sequence[Capture]) -> bool:
    """Where the audit is refused, the operation is done all the same, and its caller told so."""
    refused = [c for c in captures if c.cell.fault == STRUCK["audit_refused"][0]]
    return bool(refused) and all(_first(c).error == NONE and _first(c).effects for c in refused)


def _audited(captures: Sequence[Capture]) -> bool:
    """Nothing that was done stands without a row of the audit."""
    return not any(_first(c).done and not _first(c).told for c in captures)


def _truthful(captures: Sequence[Capture]) -> bool:
    """The audit says of nothing that it was done, where nothing was."""
    return not any(_first(c).told and not _first(c).done for c in captures)


def _once(captures: Sequence[Capture]) -> bool:
    """Submitting the operation again leaves no second effect."""
    return all(_last(c).effects <= 1 for c in captures if c.cell.policy == AGAIN)


def _not_stuck(captures: Sequence[Capture]) -> bool:
    """Submitted again, an operation whose effect is missing is not refused."""
    return not any(_is(c, "blocked") for c in captures if c.cell.policy == AGAIN)


def _not_lost(captures: Sequence[Capture]) -> bool:
    """Where the system says done, what is outside has it."""
    return not any(_is(c, "lost_effect") for c in captures)


DEMANDS: Mapping[str, Callable[[Sequence[Capture]], bool]] = {
    "goes_on": _goes_on,
    "audited": _audited,
    "truthful": _truthful,
    "once": _once,
    "not_stuck": _not_stuck,
    "not_lost": _not_lost,
}


def demands(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """What may be asked of an audit-failure policy, and which of it each one kept in every cell.

    The executor of these cells acts on every call.

    Returns:
        A row for each policy and kind of effect; columns policy, kind, and each demand: yes or no.

    Raises:
        EvidenceError: it has no such cells.
    """
    rows = [
        (
            text(f"audit_policy.{policy}", lang),
            text(f"effect_kind.{kind}", lang),
            *(text(f"contrast.{_WORDS[one]}", lang) for one in kept_by.values()),
        )
        for (policy, kind), kept_by in kept(evidence).items()
    ]
    return frame(rows, ("audit_policy", "effect_kind", *DEMANDS), lang)


def kept(evidence: Evidence) -> dict[tuple[str, str], dict[str, bool | None]]:
    """Policy and kind of effect → demand → whether it was kept in every cell of them.

    None where one of these cells is unknown: nothing can be said of all of them.
    """
    groups: dict[tuple[str, str], list[Capture]] = {}
    for capture in captures_of(evidence, POLICIES):
        if capture.cell.dedupe == NONE:
            groups.setdefault(parts(capture), []).append(capture)
    return {
        key: {
            name: holds(groups[key]) if _known(groups[key]) else None
            for name, holds in DEMANDS.items()
        }
        for key in sorted(groups, key=lambda one: place(one[0]))
    }


def _known(captures: Sequence[Capture]) -> bool:
    return not any(_is(capture, "unknown") for capture in captures)


def _is(capture: Capture, verdict: VerdictName) -> bool:
    """Whether it has this verdict; one without any is unknown."""
    found = capture.judgement.verdict
    return (found.verdict if found else "unknown") == verdict


def _first(capture: Capture) -> Seen:
    return seen(capture.measurement.observations[0])


def _last(capture: Capture) -> Seen:
    return seen(capture.measurement.observations[-1])

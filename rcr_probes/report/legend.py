"""What the codes in the tables of some evidence mean: a row for each that occurs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture
from rcr_probes.report.repeats import name_of
from rcr_probes.report.texts import table, text
from rcr_probes.vocabulary import NONE, kind_of

_OURS = "rcr_probes."  # only of our own runtimes do the texts know the ways
# An axis of a cell → the sections of the texts that say what its words mean.
_AXES: Mapping[str, Sequence[str]] = {
    "point": ("guide.point", "legend.points"),
    "fault": ("legend.faults",),
    "dedupe": ("legend.dedupes",),
    "digest": ("legend.digests",),
    "witness": ("legend.witnesses",),
    "recovery_fault": ("legend.recovery_faults",),
}
_ERRORS = ("legend.errors",)


def codes(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The words of the data that occur: of each axis, the errors that callers saw, the decisions.

    Returns:
        A row for each, in this order; columns what it stands for, code, meaning. What has no text
        is left out: a system call, or the error of somebody's runtime. So is the witness where all
        cells have the same one.
    """
    captures = list(evidence.captures())
    rows = [
        (axis, code, text(key, lang).replace("`", ""))
        for axis, section in _AXES.items()
        for code, key in _told(section, _words(captures, axis))
    ]
    errors = {
        error: error for c in captures for o in c.measurement.observations if (error := o.error)
    }
    rows += [("caller_sees", code, text(key, lang)) for code, key in _told(_ERRORS, errors)]
    decided = {c.judgement.decision.eligibility for c in captures if c.judgement.decision}
    rows += [
        ("eligibility", text(f"eligibility.{name}", lang), text(f"legend.decisions.{name}", lang))
        for name in ("reexecute", "reconcile", "stop")
        if name in decided
    ]
    said = [(text(f"column.{column}", lang), name, meaning) for column, name, meaning in rows]
    return _frame(said, ("used_as", "code", "meaning"), lang)


def _words(captures: Sequence[Capture], axis: str) -> dict[str, str]:
    """The kinds of an axis that occur, and how each is written: with what may follow it."""
    values = dict.fromkeys(str(getattr(c.cell, axis)) for c in captures)
    if axis == "witness" and len(values) == 1:
        return {}
    if axis in ("fault", "recovery_fault"):
        values.pop(NONE, None)
    kinds: dict[str, str] = {}
    for value in values:
        kind = (kind_of(value) if axis == "fault" else value).partition("@")[0]
        after = value[len(kind) : len(kind) + 1]
        kinds[kind] = f"{kind}{after}…" if after else kind
    return kinds


def _told(sections: Sequence[str], words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """How each word with a text is written, and its text's key, in the order of the texts."""
    for section in sections:
        for key in table():
            name = key.removeprefix(f"{section}.")
            if name != key and name in words:
                yield words[name], key


def ways(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The policies that occur, and what each means.

    Returns:
        A row for each policy and meaning; columns policy, the runtimes that mean it so, meaning;
        what holds for several runtimes first.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for runtime, policy in dict.fromkeys(_used(evidence)):
        found.setdefault((policy, _way(runtime, policy, lang)), []).append(name_of(runtime))
    several = sorted(found, key=lambda one: len(found[one]) == 1)
    rows = [(policy, ", ".join(found[policy, said]), said) for policy, said in several]
    return _frame(rows, ("policy", "runtime", "meaning"), lang)


def variants(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The configurations of our adapters that occur, and what each is.

    Returns:
        A row for each; columns runtime, configuration, meaning; in the order of the plan. What has
        no text is left out: a runtime that has no other configuration.
    """
    seen = dict.fromkeys((cell.runtime, str(cell.variant)) for cell in evidence.plan.cells)
    rows = [
        (name_of(runtime), variant, text(key, lang))
        for runtime, variant in seen
        if (key := _own("variants", runtime, variant)) is not None
    ]
    return _frame(rows, ("runtime", "variant", "meaning"), lang)


def _used(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for cell in evidence.plan.cells:
        if cell.policy is not None:
            yield cell.runtime, cell.policy


def _way(runtime: str, policy: str, lang: str) -> str:
    """What a policy means for a runtime: as its adapter has it, or else in general."""
    own = _own("ways", runtime, policy)
    if own is not None:
        return text(own, lang)
    general = f"legend.ways.{policy}"
    return text(general if general in table() else "legend.ways.other", lang)


def _own(section: str, runtime: str, word: str) -> str | None:
    """The key of what one of our adapters means by a word, where there is such a text."""
    module = runtime.partition(":")[0]
    key = f"legend.{section}.{module.rpartition('.')[2]}.{word}"
    return key if module.startswith(_OURS) and key in table() else None


def _frame(
    rows: list[tuple[str, str, str]], names: tuple[str, str, str], lang: str
) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[text(f"column.{name}", lang) for name in names])

"""What the cells of the notebooks call: measure, say, show, draw."""

from __future__ import annotations

import base64
import importlib
import logging
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import publish_display_data

import rcr_probes
from rcr_probes import plan as plans
from rcr_probes.errors import EvidenceError, PlanError
from rcr_probes.evidence import store, write
from rcr_probes.evidence.compare import compare
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import P3, Plan
from rcr_probes.report import tables
from rcr_probes.report.explain import in_words
from rcr_probes.report.parameters import checked
from rcr_probes.report.repeats import UNSTABLE, WHO, recovered, repeated
from rcr_probes.report.texts import text
from rcr_probes.run import run
from rcr_probes.vocabulary import NONE, VERDICTS

EVIDENCE = Path(rcr_probes.__file__).parents[1] / "evidence"
PUBLISHED = EVIDENCE / "rcr-20260831"
# Real runtimes wait more than they compute: for a server, for a message to come again.
_LONG = 90.0  # seconds for a phase
_WAITING = 6  # cells side by side


def measured(
    *names: str,
    points: Sequence[str] | None = None,
    dedupe: Sequence[str] | None = None,
    digests: Sequence[str] | None = None,
    start: str = "fork",
) -> Evidence:
    """Run the chosen cells of shipped plans, now and here.

    The captures are kept in memory, and the folder is removed: a notebook leaves nothing behind.

    Args:
        names: of the plans; a cell that several of them have is run once.
        points: only cells whose fault strikes at one of these; all when None.
        dedupe: only cells whose executor has one of these.
        digests: only cells whose recomputed request has one of these.
        start: ``fork`` or ``spawn``.

    Raises:
        UnknownName: a plan or a value that nothing knows.
        PlanError: a value of the wrong type, or no cell is left.
    """
    checked("start", start)
    plan = selected(*names, points=points, dedupe=dedupe, digests=digests)
    with tempfile.TemporaryDirectory(prefix="rcr-") as scratch:
        evidence = run(plan, Path(scratch, "evidence"), start=start)
        return evidence.in_memory()


def selected(*names: str, **chosen: Sequence[str] | None) -> Plan:
    """The cells of these shipped plans that have one of the chosen values on each axis.

    Args:
        names: of the plans.
        chosen: ``points``, ``dedupe``, ``digests``; None chooses all.

    Raises:
        UnknownName: a plan or a value that nothing knows.
        PlanError: a value of the wrong type, or no cell is left.
    """
    axes = {"points": "point", "dedupe": "dedupe", "digests": "digest"}
    wanted = {name: checked(name, given) for name, given in chosen.items() if given is not None}
    every = [cell for name in names for cell in plans.read(name).cells]
    cells = dict.fromkeys(
        cell
        for cell in every
        if all(getattr(cell, axes[axis]) in values for axis, values in wanted.items())
    )
    if not cells:
        there = {axis: [*dict.fromkeys(getattr(c, axes[axis]) for c in every)] for axis in wanted}
        raise PlanError(
            f"No cell of {' or '.join(names) or 'no plan'} has {_choice(wanted) or 'anything'}.",
            f"Choose among what is there: {_choice(there)}.",
        )
    return Plan(" and ".join(names), tuple(cells))


def _choice(values: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{name} = {[*some]}" for name, some in values.items())


def real_runtimes(which: str) -> Evidence:
    """The plan ``runtimes``: as committed, or of what is installed here, measured now.

    Args:
        which: ``committed`` or ``installed``.

    Raises:
        UnknownName: it is neither.
        RuntimeMissing: nothing of the plan is installed here.
    """
    if checked("runtimes", which) == "committed":
        return store.read(EVIDENCE / "runtimes").in_memory()
    plan, _ = plans.read_installed("runtimes")
    with tempfile.TemporaryDirectory(prefix="rcr-") as scratch:
        evidence = run(plan, Path(scratch, "evidence"), deadline=_LONG, workers=_WAITING)
        return evidence.in_memory()


def evidence_of(name: str, which: str) -> Evidence:
    """A shipped plan's evidence: as committed, or measured now.

    Args:
        name: of the plan, and of its folder.
        which: ``committed`` or ``now``.

    Raises:
        UnknownName: it is neither.
        PlanError: it is to be recorded now, and strace is not installed.
    """
    if checked("run", which) == "committed":
        return store.read(EVIDENCE / name).in_memory()
    with tempfile.TemporaryDirectory(prefix="rcr-") as scratch:
        evidence = run(plans.read(name), Path(scratch, "evidence"))
        return evidence.in_memory()


def say(key: str, lang: str, evidence: Evidence | None = None, **values: object) -> None:
    """Display a text of the section ``prose``, filled in from the evidence and with what is given.

    Args:
        key: of the text.
        lang: ``en`` or ``zh``.
        evidence: whose numbers it says.
        values: what else stands in its places.
    """
    known = facts(evidence, lang) if evidence else {}
    _markdown(text(f"prose.{key}", lang, **known, **values))


def reserve(evidence: Evidence, lang: str) -> None:
    """Where captures are unknown, say before anything else that what follows does not hold."""
    known = facts(evidence, lang)
    if known["unknown"]:
        _markdown(text("prose.reserve", lang, **known))


def facts(evidence: Evidence, lang: str = "en") -> dict[str, object]:
    """What the prose says in numbers and words.

    Returns:
        Counts over all cells, and over those whose state after the fault was ``failed``; how many
        cells (their repeats taken together) have each verdict, by who recovered; where P3 itself is
        there, each of its columns as ``p3_`` and the column's name, codes in words.
    """
    frame = tables.tidy(evidence)
    struck = frame["point"] != NONE
    failed = struck & (frame["state_after_fault"] == "failed")
    present = frame["effects_after_fault"] > 0
    harmless = frame["call_harm"] == NONE
    counted = {
        "cells": frame["cell"].notna(),
        "faults": struck,
        "fired": frame["fired"],
        "unknown": frame["verdict"] == "unknown",
        "failed": failed,
        "failed_present": failed & present,
        "failed_absent": failed & ~present,
        "failed_harmful": failed & frame["call_harm"].isin(["duplicate", "wrong"]),
        "failed_needed": failed & frame["call_needed"] & harmless,
        "failed_neither": failed & ~frame["call_needed"] & harmless,
    }
    found: dict[str, object] = {name: int(which.sum()) for name, which in counted.items()}
    found["start"] = ", ".join(frame["start"].dropna().unique())
    ours = write.environment()["packages"]
    theirs = {name: given for name, given in evidence.versions.items() if name not in ours}
    found["versions"] = ", ".join(f"{name} {given}" for name, given in theirs.items())
    found["runtimes"] = frame["runtime"].nunique()
    taken = repeated(evidence)
    found["together"] = len(taken)
    found["repeats"] = ", ".join(str(n) for n in sorted({len(one.rows) for one in taken}))
    for result in (*VERDICTS, UNSTABLE):
        having = [one for one in taken if one.result == result]
        found[f"all_{result}"] = len(having)
        for who in WHO:
            found[f"{who}_{result}"] = sum(recovered(one, who) for one in having)
    for p3 in frame[frame["cell"] == "/".join(P3)].to_dict("records"):
        found |= {f"p3_{name}": in_words(str(name), value, lang) for name, value in p3.items()}
    return found


def show(table: Callable[..., pd.DataFrame], evidence: object, *args: Any, **options: Any) -> None:
    """Display what a function makes of the evidence; where it is empty, say so.

    Args:
        table: the function: of ``tables``, ``timeline`` or ``reviewed``.
        evidence: what it reads.
        args: the language, where the function takes one.
        options: what else it takes.
    """
    try:
        frame = table(evidence, *args, **options)
    except EvidenceError:
        _markdown(text("prose.not_chosen", *args))
        return
    index = not isinstance(frame.index, pd.RangeIndex)
    frame = frame.astype("object").where(frame.notna(), "")  # a blank, not the word <NA>
    with pd.option_context("display.max_colwidth", None, "display.unicode.east_asian_width", True):
        html = frame.to_html(index=index, border=0, justify="left")
        plain = frame.to_string(index=index)
    # Jupyter's own style sets every column to the right, which suits numbers alone.
    html = re.sub("<(td|th)(?=[ >])", r'<\1 style="text-align: left"', html)
    html = html.replace(" → ", "&nbsp;→&nbsp;")  # a narrow column would break "1 → 2" in two
    _display({"text/html": html, "text/plain": plain})


def draw(evidence: Evidence, lang: str) -> None:
    """Display P3's causal figure, and say what it shows to those who cannot see it."""
    said = text("prose.chain_figure", lang, **facts(evidence, lang))
    _draw("figure", "causal_chain", said, evidence, lang)


def draw_matrix(evidence: Evidence, lang: str) -> None:
    """Display the matrix of real runtimes; the table of ``repeats`` says the same in words."""
    said = text("prose.runtimes_figure", lang, **facts(evidence, lang))
    _draw("matrix", "matrix", said, evidence, lang)


def draw_decisions(lang: str) -> None:
    """Display what is decided of every combination of facts."""
    _draw("gated", "decision_table", text("prose.worth_decisions_figure", lang), lang)


def draw_compared(evidence: Evidence, lang: str) -> None:
    """Display what each policy was worth; the table of ``worth`` says the same in words."""
    _draw("gated", "compared", text("prose.worth_figure", lang), evidence, lang)


def _draw(module: str, name: str, said: str, *args: object) -> None:
    """Display a figure of a module of ``report``, and what it says for those who cannot see it."""
    # Where its font cache is new, matplotlib logs a path of this machine into the notebook.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from rcr_probes.report.figure import rendered

    make = getattr(importlib.import_module(f"rcr_probes.report.{module}"), name)
    png = base64.b64encode(rendered(make(*args), ".png")).decode()
    _display({"image/png": png, "text/plain": said}, {"image/png": {"alt": said}})


def beside_published(evidence: Evidence, lang: str) -> None:
    """Display the published figures, and how what was measured here compares with them."""
    published = store.read(PUBLISHED)
    show(tables.restart, published, lang)
    _compared("restart_compared", evidence, published, lang)


def beside_ours(published: Evidence, lang: str) -> None:
    """Say how what others published compares with the committed evidence of the article's plan."""
    _compared("review_compared", store.read(EVIDENCE / "article"), published, lang)


def _compared(key: str, ours: Evidence, theirs: Evidence, lang: str) -> None:
    found = compare(ours, theirs)
    absent = [one for one in found.not_given if one.side == "theirs" and one.pairs == found.pairs]
    values = {
        "pairs": found.pairs,
        "values": found.values,
        "differences": len(found.differences),
        "absent": ", ".join(f"`{one.column}`" for one in absent) or NONE,
    }
    say(key, lang, None, **values)
    for one in found.differences:
        _markdown(f"- `{one.ours}` `{one.column}`: {one.our_value} ≠ {one.their_value}")


def _markdown(said: str) -> None:
    _display({"text/markdown": said, "text/plain": said})


def _display(data: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
    publish_display_data(data, metadata)  # type: ignore[no-untyped-call]

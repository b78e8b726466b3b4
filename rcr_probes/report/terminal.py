"""Print for a person: the tables, the progress of a run, and what somebody should act on."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import pandas as pd
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from rcr_probes.errors import EvidenceError, printable
from rcr_probes.evidence.exported import Exported, Rowed
from rcr_probes.evidence.published import Imported
from rcr_probes.evidence.rows import Row, named, write_csv
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import MATCHED
from rcr_probes.report import audit_policies, demands, outages, repeats, struck, tables, worth
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import VerdictName

# After these a person has something to do; the first ones weigh most.
ACTED_ON: tuple[VerdictName, ...] = (
    "wrong_effect",
    "duplicate_effect",
    "lost_effect",
    "blocked",
    "state_effect_split",
    "held",
    "unknown",
)
# The article's tables: name → what makes it, and the cells that it shows.
_ARTICLE: Mapping[str, tuple[Callable[[Rowed, str], pd.DataFrame], Mapping[str, tables.Key]]] = {
    "fault_locations": (tables.fault_locations, tables.PROBES),
    "restart": (tables.restart, tables.EXECUTORS),
}
# The tables of shipped plans that need whole captures: plan and name → what makes it.
_OWN: Mapping[str, Callable[[Evidence, str], pd.DataFrame]] = {
    "faults.policies": worth.policies,
    "faults.recovered": worth.outcomes,
    "faults.around": worth.around,
    "faults.pairs": worth.pairs,
    "contrast.refused": audit_policies.outcomes,
    "contrast.demands": demands.demands,
    "syscalls.counts": struck.counts,
    "syscalls.calls": struck.calls,
    "syscalls.keyed": partial(struck.calls, dedupe="operation_key"),
    "syscalls.flushes": partial(struck.calls, variant="fsync"),
    "power.states": outages.states,
    "power.outcomes": outages.outcomes,
}
_UNBOUNDED = 100_000  # columns: what is piped is never wrapped or cut
_NOTHING = "-"  # not known, not published, or no such cell in the plan


@dataclass(frozen=True, slots=True)
class Drawn:
    """One table as it is drawn: its title, its columns, and its rows as text.

    Attributes:
        title: what it shows.
        columns: heading → whether the column holds numbers.
        rows: as many values as there are columns.
    """

    title: str
    columns: dict[str, bool]
    rows: list[list[str]]


def article_or_verdicts(evidence: Evidence, lang: str) -> list[Drawn]:
    """The article's tables where they are whole; where a cell is in none of these, all verdicts.

    Of a plan that has tables of its own, these: nobody reads a thousand verdicts.
    """
    if own := _own(evidence, lang):
        return own
    drawn = _article(evidence, lang)
    seen = {key for name, (_, rows) in _ARTICLE.items() if name in drawn for key in rows.values()}
    cells = (tuple(getattr(cell, axis) for axis in MATCHED) for cell in evidence.plan.cells)
    whole = all(key in seen for key in cells)
    return [*drawn.values(), *([] if whole else _verdicts(evidence, lang))]


def every(evidence: Rowed, lang: str) -> list[Drawn]:
    """The article's tables where the evidence holds them whole, and the verdicts of all cells.

    Raises:
        EvidenceError: a capture cannot be read, or there is nothing to draw.
    """
    own = _own(evidence, lang) if isinstance(evidence, Evidence) else []
    drawn = [*own, *_article(evidence, lang).values()]
    try:
        return drawn + _verdicts(evidence, lang)
    except EvidenceError:  # rows that others published are not judged
        if drawn := drawn or [*_article(evidence, lang, whole=False).values()]:
            return drawn
        raise


def not_drawn(rows: Exported, lang: str) -> list[str]:
    """The titles of the tables that the evidence has besides, and that need more than its rows."""
    if rows.is_probe:
        return [text("probe.title", lang)]
    named = (name.partition(".") for name in _OWN)
    return [text(f"table.{table}", lang) for plan, _, table in named if plan == rows.plan]


def draw(drawn: list[Drawn]) -> None:
    """Print tables to stdout: as wide as the terminal, or as they need where there is none."""
    seen = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if seen else _UNBOUNDED
    for one in drawn:
        table = Table(title=Text(one.title), title_justify="left", box=box.SIMPLE_HEAD)
        for name, number in one.columns.items():
            table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
        for row in one.rows:
            table.add_row(*(Text(value) for value in row))
        drawing = io.StringIO()  # rich would end the process where a reader has seen enough
        Console(file=drawing, width=width, force_terminal=seen, highlight=False).print(table)
        print("\n".join(line.rstrip() for line in drawing.getvalue().splitlines()))


def print_markdown(drawn: list[Drawn]) -> None:
    """Print the same tables in GitHub's Markdown."""
    for place, one in enumerate(drawn):
        title = f"**{one.title}**\n"
        print(f"\n{title}" if place else title)
        print(markdown(one))


def markdown(one: Drawn) -> str:
    """A table in GitHub's Markdown, without its title; numbers stand to the right."""
    rule = ["---:" if number else "---" for number in one.columns.values()]
    lines = [[v.replace("|", "\\|") for v in line] for line in (one.columns, rule, *one.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def print_json(rows: Iterable[Row]) -> None:
    """Print rows as one list, one after another: no two of them are in memory."""
    between = "[\n"
    for row in rows:
        print(between + json.dumps([row], indent=1)[2:-2], end="")
        between = ",\n"
    print("[]" if between == "[\n" else "\n]")


def print_csv(evidence: Rowed) -> None:
    """Print rows as CSV, one after another: what they all have besides is asked before."""
    write_csv(sys.stdout, evidence.rows(), evidence.columns)


def print_imported(imported: Imported) -> None:
    """Print what came of a package, and what did not."""
    print(f"{imported.evidence.folder}: captures: {len(imported.evidence.plan.cells)}")
    for said, names in (
        ("absent from the package", imported.package.absent),
        ("not in its manifest, and not read", imported.package.unlisted),
        ("not imported", imported.left_out),
    ):
        if names:
            print("\n  ".join([f"{said}: {len(names)}", *map(printable, names)]))


def advice(evidence: Evidence, lang: str) -> list[str]:
    """One sentence for each verdict that a person should act on, and what to type to see why.

    A cell counts once, however often it was measured, for each verdict that one of its repeats has.
    """
    found: dict[str, set[str]] = {}
    example: dict[str, str] = {}
    for told in evidence.told():
        cell, verdict = str(told[0]["cell"]), told[0]["verdict"]
        if verdict is not None:
            found.setdefault(str(verdict), set()).add(cell)
            example.setdefault(str(verdict), named(told))
    judged = set().union(*found.values())
    lines = []
    for name in (name for name in ACTED_ON if name in found):
        lines.append(
            text(
                "advice.verdict",
                lang,
                verdict=text(f"verdict.{name}", lang),
                cells=len(found[name]),
                all=len(judged),
                action=text(f"action.{name}", lang),
            )
        )
        lines.append(why(evidence, example[name], lang))
    return lines


def why(evidence: Evidence, cell: str, lang: str) -> str:
    """What to type to see why a cell shows what it does, in the same language."""
    language = [] if lang == "en" else ["--lang", lang]
    return f"  {shlex.join(['rcr', 'explain', str(evidence.folder), cell, *language])}"


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr while something runs, called with how many are done, and of how many.

    None where stderr is no terminal: a log needs no bar.
    """
    if not sys.stderr.isatty():
        yield None
        return
    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(title), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _article(evidence: Rowed, lang: str, *, whole: bool = True) -> dict[str, Drawn]:
    drawn = {}
    for name, (make, rows) in _ARTICLE.items():
        try:
            frame = make(evidence, lang)
        except EvidenceError:  # what cannot be read is told by the verdicts, which come next
            continue
        if not whole or frame.iloc[:, 0].nunique() == len(rows):
            drawn[name] = _drawn(text(f"table.{name}", lang), frame)
    return drawn


def _own(evidence: Evidence, lang: str) -> list[Drawn]:
    """The tables that a shipped plan has besides: what its cells show together."""
    drawn = []
    for name, make in _OWN.items():
        plan, _, table = name.partition(".")
        if plan == evidence.plan.name:
            with suppress(EvidenceError):  # a part of the plan was run, without these cells
                drawn.append(_drawn(text(f"table.{table}", lang), make(evidence, lang)))
    return drawn


def _verdicts(evidence: Rowed, lang: str) -> list[Drawn]:
    """The matrix of verdicts; where cells were measured more than once, a row for each instead."""
    if any(len(one.rows) > 1 for one in repeats.repeated(evidence)):
        made = {"gap": repeats.gap(evidence, lang), "repeats": repeats.table(evidence, lang)}
        return [_drawn(text(f"table.{name}", lang), made[name]) for name in made if len(made[name])]
    matrix = tables.verdicts(evidence, lang)
    named = matrix.rename(columns=lambda policy: text("table.policy", lang, policy=policy))
    return [_drawn(text("table.verdicts", lang), named.reset_index())]


def _drawn(title: str, frame: pd.DataFrame) -> Drawn:
    numbers = {
        printable(str(name)): pd.api.types.is_integer_dtype(kind)
        for name, kind in frame.dtypes.items()
    }
    rows = [
        [_NOTHING if pd.isna(value) else printable(str(value)) for value in row]
        for row in frame.itertuples(index=False, name=None)
    ]
    return Drawn(title, numbers, rows)

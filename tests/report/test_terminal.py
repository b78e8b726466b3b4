"""What a person is told to act on, and the tables as Markdown."""

from __future__ import annotations

from dataclasses import replace

from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Judgement, Verdict
from rcr_probes.report.terminal import ACTED_ON, Drawn, advice, markdown
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import VERDICTS, VerdictName

AT_REST = {"deduplicated", "protected", "consistent", "no_effect"}


def with_verdict(evidence: Evidence, verdict: VerdictName) -> Evidence:
    """The same evidence, its first cell judged so and the others not."""
    first, *rest = evidence.captures()
    judged = replace(first, judgement=Judgement(verdict=Verdict(verdict, ())))
    others = [replace(one, judgement=Judgement()) for one in rest]
    return replace(evidence, remembered=(judged, *others))


def test_every_verdict_asks_for_an_act_unless_nothing_is_left_to_do(article: Evidence) -> None:
    """A new verdict is put on one side or the other; what asks for an act is told with it."""
    assert set(ACTED_ON) == set(VERDICTS) - AT_REST
    for verdict in VERDICTS:
        lines = advice(with_verdict(article, verdict), "en")
        told = [verdict] if verdict in ACTED_ON else []
        assert [line.split()[0] for line in lines[::2]] == told
        assert all(text(f"action.{verdict}", "en") in line for line in lines[::2])


def test_a_cell_counts_once_however_often_it_was_measured(repeats: Evidence) -> None:
    """The numbers of an advice are of cells; a verdict of one repeat alone counts as well."""
    captures = list(repeats.captures())
    cells = {replace(c.cell, repeat=0) for c in captures}
    assert len(cells) < len(captures)
    changed = replace(captures[-1], judgement=Judgement(verdict=Verdict("lost_effect", ())))
    shown = replace(repeats, remembered=(*captures[:-1], changed))
    told = {line.split()[0]: line for line in advice(shown, "en")[::2]}
    for name, line in told.items():
        having = {
            replace(c.cell, repeat=0)
            for c in shown.captures()
            if c.judgement.verdict and c.judgement.verdict.verdict == name
        }
        assert f"{name} in {len(having)} of {len(cells)} cells." in line
    assert {"duplicate_effect", "lost_effect"} <= set(told)


def test_markdown_keeps_a_cell_in_its_column() -> None:
    """Numbers stand to the right, and a bar in a value is no border."""
    drawn = Drawn("a title", {"name": False, "count": True}, [["a|b", "2"], ["-", "10"]])
    assert markdown(drawn).splitlines() == [
        "| name | count |",
        "| --- | ---: |",
        "| a\\|b | 2 |",
        "| - | 10 |",
    ]

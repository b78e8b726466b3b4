"""The tables and the section on audit failure: from captures alone, and what their prose says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rcr_probes.contrast import drain, policies, submission
from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.claimed import held
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Judgement, Plan, Verdict
from rcr_probes.report import audit_policies
from rcr_probes.report.audit_policies import STRUCK
from rcr_probes.report.demands import DEMANDS, kept
from rcr_probes.report.guide.audit_policies import policies as section
from rcr_probes.report.guide.material import Material
from rcr_probes.report.texts import LANGS, table, text

ROOT = Path(__file__).parents[2]
Kept = Mapping[tuple[str, str], Mapping[str, bool | None]]


@pytest.fixture(scope="module")
def keeps(contrast: Evidence) -> Kept:
    return kept(contrast)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("struck", STRUCK)
def test_every_policy_and_kind_has_a_row_for_each_fault(
    contrast: Evidence, lang: str, struck: str
) -> None:
    """Policies in the order of the article, each with both kinds of effect."""
    frame = audit_policies.outcomes(contrast, lang, struck=struck)
    named = [
        (text(f"audit_policy.{policy}", lang), text(f"effect_kind.{kind}", lang))
        for policy in policies.POLICIES
        for kind in policies.KINDS
    ]
    assert list(zip(frame.iloc[:, 0], frame.iloc[:, 1], strict=True)) == named


@pytest.mark.parametrize(
    ("variants", "section"),
    [
        (drain.DrainRuntime.variants, "drain_variant"),
        (submission.Submissions.variants, "submission_memory"),
        (tuple(policies.POLICIES), "audit_policy"),
        (policies.KINDS, "effect_kind"),
    ],
)
def test_every_word_of_the_data_is_known_to_the_texts(
    variants: tuple[str, ...], section: str
) -> None:
    """And the texts know no other; in Chinese the code stands beside its term."""
    known = {key.partition(".")[2] for key in table() if key.startswith(f"{section}.")}
    assert known == set(variants)
    for name in variants:
        assert text(f"{section}.{name}", "en") == name
        assert text(f"{section}.{name}", "zh").endswith(f"（{name}）")


def test_no_policy_keeps_every_demand(keeps: Kept) -> None:
    """As the prose says: each row lacks something, and each demand is kept by some row."""
    assert len(keeps) == len(policies.POLICIES) * len(policies.KINDS)
    assert not [row for row, of in keeps.items() if all(of.values())]
    for demand in DEMANDS:
        assert {of[demand] for of in keeps.values()} == {True, False}


def test_the_first_two_demands_exclude_each_other(keeps: Kept) -> None:
    """To go on without the audit, or to leave nothing unaudited."""
    assert not [row for row, of in keeps.items() if of["goes_on"] and of["audited"]]


def test_of_what_cannot_be_rolled_back_no_policy_has_both_of_two_demands(keeps: Kept) -> None:
    """No second effect, and nothing refused that is needed; of the other kind some have both."""
    both = {row for row, of in keeps.items() if of["once"] and of["not_stuck"]}
    assert both
    assert {kind for _, kind in both} == {"reversible"}


def test_a_notice_of_what_can_be_rolled_back_can_be_lost_by_all(keeps: Kept) -> None:
    """It is itself an effect that cannot be rolled back."""
    for kind, lost in {"reversible": True, "irreversible": False}.items():
        found = {of["not_lost"] for row, of in keeps.items() if row[1] == kind}
        assert found == {not lost}


def test_a_cell_of_which_nothing_is_known_makes_no_demand_kept(contrast: Evidence) -> None:
    """Neither yes nor no, in the row of its policy and kind alone."""
    unknown = Judgement(verdict=Verdict("unknown", ("judge_failed",)))
    captures = [
        replace(c, judgement=unknown)
        if c.cell.variant == "side_path_reversible" and c.cell.fault == "result_refused"
        else c
        for c in contrast.captures()
    ]
    changed = kept(replace(contrast, remembered=tuple(captures)))
    assert set(changed["side_path", "reversible"].values()) == {None}
    assert None not in changed["side_path", "irreversible"].values()


@pytest.mark.parametrize("lang", LANGS)
def test_drain_and_responses_show_each_cell_once(contrast: Evidence, lang: str) -> None:
    """What was tried again stands for what was left alone."""
    for make, runtime in (
        (audit_policies.drains, audit_policies.DRAIN),
        (audit_policies.responses, audit_policies.SUBMISSION),
    ):
        cells = {
            (c.variant, c.point, c.fault, c.dedupe, c.digest)
            for c in contrast.plan.cells
            if c.runtime == runtime
        }
        assert len(make(contrast, lang)) == len(cells)


def test_other_evidence_has_no_such_tables(contrast: Evidence) -> None:
    """It is an error, which a notebook shows as a sentence."""
    other = replace(contrast, plan=Plan("other", ()), remembered=())
    with pytest.raises(EvidenceError, match="holds no such cells"):
        audit_policies.outcomes(other)


@pytest.mark.parametrize("lang", LANGS)
def test_the_section_of_the_guide_shows_every_table(contrast: Evidence, lang: str) -> None:
    """With the evidence in memory, and without claims of it; it is left out where there is none."""
    evidence = replace(contrast, remembered=tuple(contrast.captures()))
    claims = held(ROOT / "evidence")
    page = section(Material(lang, {"contrast": evidence}, claims))
    assert page is not None
    for name in ("refused", "killed_after", "killed_before", "demands", "drains", "responses"):
        assert f"<caption><bdi>{text(f'contrast.{name}', lang)}</bdi></caption>" in page
    assert not {">nan<", ">&lt;NA&gt;<", ">None<"} & set(re.findall(">[^<>]*<", page))
    assert section(Material(lang, {}, claims)) is None

"""Evidence from elsewhere is data: whatever its events say, each reader answers or refuses."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rcr_probes.cli import main
from rcr_probes.errors import EvidenceError, RcrError
from rcr_probes.evidence import consistency, lanes, seal, store, timeline
from rcr_probes.model import Capture
from rcr_probes.report import explain, probed, struck
from rcr_probes.report.figure import causal_chain
from rcr_probes.report.guide.explained import explained
from rcr_probes.report.sentences import said, sentence
from tests.evidence import made
from tests.probe import courses, test_sentences

EVIDENCE = Path(__file__).parents[2] / "evidence"
P3 = "completion_audit/audit_is_directory/none/same/resume"
# JSON of every kind, also where the harness writes one kind alone.
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "none", "E1", "K1", "payload-1", "done", "mismatch", 0, 1, -1, [], {}]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["event", "point", "kind", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
# What stands in a value's place; the first is nothing at all, the last is nested too deeply.
DEEP: Any = json.loads("[" * 400 + "]" * 400)
PUT_WRONG: tuple[Any, ...] = (
    ..., None, True, 7, -9, 0.5, "x", [], [None], [["x"]], {}, DEEP,
)  # fmt: skip
NAMES = (
    "status", "execution", "evidence", "error", "event", "reasons", "point", "fault", "state",
    "states", "unexplored", "lines", "lost", "effects", "in_flight", "operation_key", "key",
    "payload", "outcome", "gave_up", "effect_id", "kind", "target", "call", "attempt", "x",
)  # fmt: skip
LANES = ("state", "audit", "point", "fault", "call", "ask", "effect", "return")


@cache
def captures(name: str) -> list[Capture]:
    """Sound captures: of the article, of a lost power, of a probed worker. The last is changed."""
    if name == "worker":
        control = test_sentences.made(test_sentences.CONTROL, test_sentences.FIRST)
        again = test_sentences.made(
            test_sentences.LOST, test_sentences.FIRST, test_sentences.SECOND
        )
        return [courses.capture(one) for one in (control, again)]
    cells = store.read(EVIDENCE / name).captures()
    wanted = P3 if name == "article" else "power_loss#3"
    return [next(one for one in cells if wanted in one.cell.id)]


def sealed(changed: Any) -> Capture:
    """A capture as a forger seals it: the digest is that of its facts."""
    one = msgspec.convert(changed, Capture)
    return seal.seal(one.measurement, one.judgement, one.circumstances)


@st.composite
def misshapen(draw: st.DrawFn) -> tuple[str, bytes]:
    """The line of the last capture of a folder, its events changed."""
    name = draw(st.sampled_from(["article", "power", "worker"]))
    one = msgspec.to_builtins(captures(name)[-1])
    events = one["measurement"]["events"]
    for event in draw(st.lists(st.sampled_from(events), min_size=1, max_size=3)):
        match draw(st.sampled_from(["put", "put", "put", "drop", "lane", "phase"])):
            case "put":
                key = draw(st.sampled_from([*event["value"], *NAMES]))
                event["value"][key] = draw(ODD)
            case "drop" if event["value"]:
                del event["value"][draw(st.sampled_from(list(event["value"])))]
            case "lane":
                event["lane"] = draw(st.sampled_from(LANES))
            case _:
                event["phase"] = draw(st.sampled_from(["fault", "recover", "", "x"]))
    return name, seal.encode(sealed(one))


def answered(read: Callable[[], object]) -> None:
    """What a reader gives, or its refusal: nothing else comes of it."""
    with contextlib.suppress(RcrError):
        read()


def read_all(folder: Path) -> None:
    """Every reader of captures, as it is typed or called."""
    evidence = store.read(folder)
    cell = evidence.plan.cells[-1].id
    for words in (
        ["show", str(folder)],
        ["show", str(folder), "--json"],
        ["explain", str(folder), cell],
        ["timeline", str(folder), cell, "--at", "0"],
        ["compare", str(folder), str(EVIDENCE / "article")],
        ["export", str(folder), "--to", str(folder / "rows.parquet")],
        ["check", str(folder)],
    ):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            assert main(words) in (0, 1, 2)
        assert out.getvalue()
    for read in (
        lambda: [explained(one, "en") for one in evidence.captures()],
        lambda: struck.calls(evidence),
        lambda: causal_chain(evidence),
    ):
        answered(read)


@given(misshapen())
@settings(max_examples=30)
def test_whatever_an_event_says_each_reader_answers(given: tuple[str, bytes]) -> None:
    """Text, or a refusal that says where the evidence is wrong; never a traceback."""
    name, line = given
    with TemporaryDirectory() as place:
        folder = Path(place, name)
        made.write(folder, captures(name), "elsewhere")
        made.reseal(folder, [*made.lines(folder)[:-1], line])
        read_all(folder)


def changes() -> Iterator[tuple[str, int, str, Any]]:
    """Every value that an event says, and what is put in its place."""
    for name in ("article", "power", "worker"):
        for number, event in enumerate(captures(name)[-1].measurement.events):
            for key in event.value:
                yield from ((name, number, key, odd) for odd in PUT_WRONG)


def test_what_is_decoded_is_told() -> None:
    """Each value of each lane, put wrong alone: refused where it is read, or else told in words."""
    refused = 0
    for name, number, key, odd in changes():
        one = msgspec.to_builtins(captures(name)[-1])
        value = one["measurement"]["events"][number]["value"]
        value[key] = odd
        if odd is ...:
            del value[key]
        try:
            capture = seal.decode(seal.encode(sealed(one)), "here")
        except EvidenceError:
            refused += 1
            continue
        assert explain.explain(capture)
        assert explained(capture, "en")
        assert struck.step(capture)
        assert timeline.of_capture(capture).envelopes
        if name == "worker":
            assert said(sentence(capture), "en")
    assert refused > 100


def test_who_doubts_evidence_finds_what_is_refused() -> None:
    """The check reads such a capture, and says of its event that it is of another shape."""
    one = msgspec.to_builtins(captures("article")[-1])
    one["measurement"]["events"][0]["value"]["event"] = 7
    found = list(consistency.problems(sealed(one)))
    assert "its event 0, of the lane audit, has event of another shape." in found


@pytest.mark.parametrize("lacks", ["control", "observation", "verdict"])
def test_what_is_no_probe_of_a_worker_is_refused(lacks: str, tmp_path: Path) -> None:
    """Captures of a worker without what every probe has: the refusal says how to see the rest."""
    control, other = (msgspec.to_builtins(one) for one in captures("worker"))
    if lacks == "observation":
        other["measurement"]["observations"] = other["measurement"]["observations"][:1]
    if lacks == "verdict":
        other["judgement"]["verdict"] = None
    kept = [other] if lacks == "control" else [control, other]
    evidence = made.write(tmp_path / "worker", map(sealed, kept), "worker")
    for read in (probed.drawn, probed.sentences):
        with pytest.raises(EvidenceError, match=r"no probe of a worker.*\n.*rcr check"):
            read(evidence, "en")


def test_a_figure_is_drawn_without_an_observation(tmp_path: Path) -> None:
    """Its marks are those of the events; what was seen last, nobody says."""
    one = msgspec.to_builtins(captures("article")[-1])
    one["measurement"]["observations"] = ()
    assert causal_chain(made.write(tmp_path / "article", [sealed(one)], "article")).axes


@pytest.mark.parametrize("name", ["article", "power", "worker"])
def test_sound_captures_are_shaped_so(name: str) -> None:
    """What was measured is refused by nobody."""
    assert all(lanes.problem(one.measurement) is None for one in captures(name))

"""The states that a lost power leaves: what stays, what may be gone, and how many there are."""

from __future__ import annotations

import itertools
import posixpath
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes import power
from rcr_probes.contents import Change, Content, half
from rcr_probes.power import HERE, BeyondModel, explored, standing, told
from rcr_probes.vocabulary import LOSSES

ALL = 1_000_000
FILES = ("a", "b", "d/x", "d/y")
FOLDER = "d"
KEPT = "kept"  # a file that no course touches by chance


@dataclass
class Course:
    """A course of file operations that can be made, and what stands there at its end."""

    changes: list[Change] = field(default_factory=list)
    tree: dict[str, bytes | None] = field(default_factory=dict)

    def create(self, path: str) -> None:
        self.changes.append(Change("create", path))
        self.tree.setdefault(path, b"")

    def append(self, path: str, data: bytes, placed: bool = False) -> None:
        held = self.tree[path] or b""
        self.changes.append(Change("write", path, at=len(held) if placed else None, data=data))
        self.tree[path] = held + data

    def cut(self, path: str, at: int) -> None:
        self.changes.append(Change("cut", path, at=at))
        self.tree[path] = (self.tree[path] or b"")[:at].ljust(at, b"\0")

    def rename(self, old: str, new: str) -> None:
        self.changes.append(Change("rename", old, new))
        self.tree[new] = self.tree.pop(old)

    def remove(self, path: str) -> None:
        self.changes.append(Change("remove", path))
        del self.tree[path]

    def make(self, path: str) -> None:
        self.changes.append(Change("make", path))
        self.tree[path] = None

    def flush(self, path: str) -> None:
        self.changes.append(Change("flush", path))

    def flush_all(self) -> None:
        for path in (*self.tree, HERE):
            self.flush(path)

    def files(self) -> list[str]:
        return [path for path, held in self.tree.items() if held is not None and path != KEPT]

    def step(self, draw: st.DrawFn, appends: bool) -> None:
        """One operation that can be made now."""
        there, data = self.files(), st.binary(min_size=1, max_size=6)
        folders = ["", *([f"{FOLDER}/"] if FOLDER in self.tree else [])]
        steps = ["create", "flush"] + ["make"] * (FOLDER not in self.tree)
        steps += ["append", "append", "rename", "remove"] * bool(there)
        steps += ["cut"] * bool(there and not appends)
        match draw(st.sampled_from(steps)):
            case "create":
                self.create(draw(st.sampled_from([f for f in FILES if _above(f) in folders])))
            case "make":
                self.make(FOLDER)
            case "append":
                self.append(draw(st.sampled_from(there)), draw(data), draw(st.booleans()))
            case "cut":
                self.cut(draw(st.sampled_from(there)), draw(st.integers(0, 8)))
            case "rename":
                old = draw(st.sampled_from(there))
                beside = [f for f in FILES if _above(f) == _above(old) and f != old]
                self.rename(old, draw(st.sampled_from(beside)))
            case "remove":
                self.remove(draw(st.sampled_from(there)))
            case _:
                self.flush(draw(st.sampled_from([*self.tree, HERE])))


def _above(path: str) -> str:
    folder = posixpath.dirname(path)
    return f"{folder}/" if folder else ""


@st.composite
def courses(draw: st.DrawFn, most: int = 12, appends: bool = False) -> Course:
    """Any course; with ``appends``, one in which no file is ever cut."""
    course = Course()
    for _ in range(draw(st.integers(0, most))):
        course.step(draw, appends)
    return course


def test_no_operation_leaves_one_state() -> None:
    """There is nothing that could be lost."""
    assert explored([]) == power.Explored(({},), 0)


@given(courses())
def test_the_first_state_is_what_stood_there_and_each_state_is_another(course: Course) -> None:
    """State 0 loses nothing: it is what a kill leaves."""
    found = explored(course.changes, ALL)
    assert found.states[0] == course.tree == standing(course.changes)
    assert len({tuple(sorted(state.items())) for state in found.states}) == len(found.states)


@given(courses())
def test_what_was_flushed_with_its_folder_is_in_every_state(course: Course) -> None:
    """However long the course was before: once all is flushed there is one state."""
    course.flush_all()
    assert explored(course.changes, ALL) == power.Explored((course.tree,), 0)


@st.composite
def kept(draw: st.DrawFn) -> Course:
    """A course in the middle of which a line was flushed, and another one was appended to it."""
    course = draw(courses(most=6))
    course.create(KEPT)
    course.append(KEPT, b"flushed,line\n")
    course.flush(KEPT)
    course.flush(HERE)
    course.append(KEPT, b"later,line\n")
    for _ in range(draw(st.integers(0, 6))):
        course.step(draw, appends=False)
    return course


@given(kept())
def test_flushed_bytes_stay_whatever_comes_later(course: Course) -> None:
    """A later write that is lost takes nothing with it that was flushed."""
    found = {state[KEPT] for state in explored(course.changes, 200).states}
    assert found <= {b"flushed,line\n" + rest for rest in (b"", b"later,", b"later,line\n")}
    assert b"flushed,line\nlater,line\n" in found


@given(courses(appends=True))
def test_every_state_holds_first_parts_of_what_was_written(course: Course) -> None:
    """No byte is made up, and none is there before one that was written earlier to that file."""
    made: list[bytes] = [b""]
    held: dict[str, bytes] = {}
    for change in course.changes:
        if change.do == "create":
            held.setdefault(change.path, b"")
        elif change.do == "write":
            held[change.path] += change.data
            made.append(held[change.path])
        elif change.do == "rename":
            held[change.to] = held.pop(change.path)
        elif change.do == "remove":
            held.pop(change.path)
    for state in explored(course.changes, 100).states:
        for path, there in state.items():
            above = posixpath.dirname(path)
            assert not above or above in state
            assert there is None or any(whole.startswith(there) for whole in made)


@given(courses(), st.integers(1, 30))
def test_explored_and_unexplored_states_are_all_of_them(course: Course, most: int) -> None:
    """A bound hides nothing: what was left out is counted."""
    every, some = explored(course.changes, ALL), explored(course.changes, most)
    assert len(some.states) == min(most, len(every.states))
    assert some.states == every.states[:most]
    assert len(some.states) + some.unexplored == len(every.states) + every.unexplored


@given(courses(most=7))
def test_the_states_are_those_of_every_subset(course: Course) -> None:
    """Counted here by brute force: each entry's change there or not, each file to some part."""
    brute = {tuple(sorted(state.items())) for state in subsets(course.changes)}
    found = explored(course.changes, ALL)
    assert {tuple(sorted(state.items())) for state in found.states} <= brute
    assert len(found.states) + found.unexplored == len(brute)


class File:
    """A file of the brute force: what was flushed, and what was written since."""

    def __init__(self) -> None:
        self.flushed, self.since = b"", list[Change]()

    def options(self) -> list[bytes]:
        held, found = self.flushed, [self.flushed]
        for change in self.since:
            if change.do == "write":
                found.append(_written(held, change, half(change.data)))
            held = _written(held, change, change.data)
            found.append(held)
        return list(dict.fromkeys(found))


Node = File | str  # a folder is its own name, for it is made once here or made anew elsewhere


def _written(held: bytes, change: Change, data: bytes) -> bytes:
    at = len(held) if change.at is None else change.at
    if change.do == "cut":
        return held[:at].ljust(at, b"\0")
    return held[:at].ljust(at, b"\0") + data + held[at + len(data) :]


def subsets(changes: Sequence[Change]) -> Iterator[Mapping[str, bytes | None]]:
    """Every state: folders are flushed alone, so each keeps its own entries' changes."""
    flushed: dict[str, Node] = {}
    since: list[dict[str, Node | None]] = []

    def live() -> dict[str, Node]:
        now: dict[str, Node] = dict(flushed)
        for one in since:
            _apply(now, one)
        return now

    for change in changes:
        now = live()
        match change.do:
            case "create":
                if change.path not in now:
                    since.append({change.path: File()})
            case "make":
                since.append({change.path: FOLDER})
            case "remove":
                since.append({change.path: None})
            case "rename":
                since.append({change.path: None, change.to: now[change.path]})
            case "flush" if isinstance(node := now.get(change.path), File):
                node.flushed, node.since = _live(node), []
            case "flush":
                own = [one for one in since if _top(one) == change.path]
                for one in own:
                    _apply(flushed, one)
                since = [one for one in since if one not in own]
            case _:
                node = now[change.path]
                assert isinstance(node, File)
                node.since.append(change)
    for kept in itertools.product((True, False), repeat=len(since)):
        entries: dict[str, Node] = dict(flushed)
        for one in itertools.compress(since, kept):
            _apply(entries, one)
        entries = {p: n for p, n in entries.items() if not _lies_in(p) or FOLDER in entries}
        files = [node for node in entries.values() if isinstance(node, File)]
        for contents in itertools.product(*(file.options() for file in files)):
            holds = dict(zip(map(id, files), contents, strict=True))
            yield {p: holds.get(id(n)) for p, n in entries.items()}


def _live(node: File) -> bytes:
    held = node.flushed
    for change in node.since:
        held = _written(held, change, change.data)
    return held


def _apply(entries: dict[str, Node], change: Mapping[str, Node | None]) -> None:
    for path, node in change.items():
        if node is None:
            entries.pop(path, None)
        else:
            entries[path] = node


def _top(change: Mapping[str, object]) -> str:
    return posixpath.dirname(next(iter(change))) or HERE


def _lies_in(path: str) -> bool:
    return path.startswith(f"{FOLDER}/")


def replaced(path: str, *contents: bytes, durable: bool = False) -> list[Change]:
    """A file that is replaced atomically, once for each content."""
    done: list[Change] = []
    for data in contents:
        beside = f"{path}.tmp"
        done += [Change("create", beside), Change("write", beside, data=data)]
        done += [Change("flush", beside)] * durable
        done += [Change("rename", beside, path)]
        done += [Change("flush", HERE)] * durable
    return done


def test_a_rename_before_its_bytes_leaves_an_empty_file() -> None:
    """The well-known one: the name is there, what was written under it is not."""
    found = explored(replaced("record", b"one"), ALL)
    assert {"record": b""} in found.states
    assert {} in found.states
    assert {"record": b"one"} in found.states
    assert {"record": b"one", "record.tmp": b"one"} not in found.states  # a rename is one change


def test_a_replacement_that_is_flushed_leaves_the_old_or_the_new() -> None:
    """Bytes before the name, and the name before whatever follows."""
    durable = replaced("record", b"one", durable=True)
    assert explored(durable, ALL) == power.Explored(({"record": b"one"},), 0)
    second = replaced("record", b"two", durable=True)[:-1]
    found = explored([*durable, *second], ALL)
    assert {state.get("record") for state in found.states} == {b"one", b"two"}
    assert {state.get("record.tmp") for state in found.states} == {None, b"two"}


def test_an_appended_line_is_cut_at_a_fields_end() -> None:
    """Half of the fields, whatever the numbers in them."""
    assert half(b'{"event":"a","id":"x","at":1.5}\n') == b'{"event":"a",'
    assert half(b'{"event":"a","id":"x","at":1796007678.63}\n') == b'{"event":"a",'
    assert half(b"12345\n") == b"123"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"audit": b"a,b\nc,d\n", "record": b"two"}, ()),
        ({"record": b"two"}, (("audit", "gone"),)),
        ({"audit": b"a,b\n", "record": b"two"}, (("audit", "shorter"),)),
        ({"audit": b"a,b\nc,", "record": b"two"}, (("audit", "cut"),)),
        ({"audit": b"", "record": b"two"}, (("audit", "empty"),)),
        ({"audit": b"a,b\nc,d\n", "record": b"one"}, (("record", "older"),)),
        ({"audit": b"a,b\nc,d\n", "record": b"o"}, (("record", "older_cut"),)),
        (
            {"audit": b"a,b\nc,d\n", "record": b"one", "record.tmp": b"two"},
            (("record", "older"), ("record.tmp", "back")),
        ),
    ],
)
def test_a_state_is_told_in_words(
    state: Mapping[str, bytes | None], words: tuple[tuple[str, str], ...]
) -> None:
    """What became of each file, beside what stood there when the power went."""
    course = Course(replaced("record", b"one", b"two"))
    course.tree["audit"] = b""
    course.changes.append(Change("create", "audit"))
    course.append("audit", b"a,b\n")
    course.append("audit", b"c,d\n")
    assert state in explored(course.changes, ALL).states or words[0][1] == "older_cut"
    assert told(course.changes, state) == words


@given(courses())
def test_only_the_first_state_has_nothing_to_tell(course: Course) -> None:
    """Every other one differs somewhere, and every word for it is known."""
    first, *others = explored(course.changes, 60).states
    assert told(course.changes, first) == ()
    for state in others:
        words = told(course.changes, state)
        assert words
        assert {word for _, word in words} <= set(LOSSES)


def rotated(logs: int, lines: int) -> list[Change]:
    """So many logs, each written line by line and then moved up by one name; none is flushed."""
    made: list[Change] = []
    for number in range(logs):
        if number:
            made.append(Change("rename", "log", f"log.{number}"))
        made.append(Change("create", "log"))
        made += [
            Change("write", "log", at=None, data=b"%d,%d\n" % (number, n)) for n in range(lines)
        ]
    return made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([Change("write", "a", data=b"x")], "no file that was made"),
        ([Change("create", "d/a")], "lies in no folder"),
        ([Change("rename", "a", "b")], "is not there"),
        (
            [Change("make", "d"), Change("create", "a"), Change("rename", "a", "d/a")],
            "to another folder",
        ),
        (rotated(3, lines=60), "too many ways"),
    ],
)
def test_what_the_model_has_no_states_for_is_refused(changes: list[Change], said: str) -> None:
    """It is never guessed."""
    with pytest.raises(BeyondModel, match=said):
        explored(changes)


def test_names_that_may_stand_in_too_many_ways_are_refused_before_these_are_made() -> None:
    """Their number is a product; a log of 1000 lines beside its elder would take a gigabyte."""
    tracemalloc.start()
    try:
        with pytest.raises(BeyondModel, match="too many ways"):
            explored(rotated(2, lines=400))
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_what_is_written_again_and_again_is_lost_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of losses is tried: a heartbeat in two files would take hours."""
    made = [Change("create", name) for name in "ab"]
    made += [Change("write", name, at=0, data=b"1") for name in "ab" for _ in range(30)]
    tried: list[object] = []
    state = power._Disk.state

    def counted(disk: power._Disk, lost: power._Lost) -> power.State:
        tried.append(lost)
        return state(disk, lost)

    monkeypatch.setattr(power._Disk, "state", counted)
    assert len(explored(made).states) == 9
    assert len(tried) < 100


def test_a_long_log_that_is_never_flushed_is_hashed_as_it_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work grows with what is written, and not with its square.

    Each change is made once for each state that is explored, and a few times besides.
    """
    work: list[int] = []
    changed = Content.change

    def counted(content: Content, change: Change) -> None:
        work.append(1)
        changed(content, change)

    monkeypatch.setattr(Content, "change", counted)
    lines = 1000
    appended = [Change("write", "log", at=None, data=b"a,line,%d" % n) for n in range(lines)]
    found = explored([Change("create", "log"), *appended])
    assert (len(found.states), found.unexplored) == (power.MOST, 2 * lines + 2 - power.MOST)
    assert len(work) < 60 * lines

"""What a disk may hold once the power is gone: the states that recorded file operations leave open.

Pure: from operations to states. The model is of what POSIX promises, no more, in the manner of
ALICE (Pillai and others, OSDI 2014):

- What a file held when it was last flushed (fsync, fdatasync) stays. Of what was written since, a
  first part may be there, in the order of writing: none, whole writes, and half of the next one.
- A folder's entries stay as they were when it was last flushed. Of what was done to them since
  (a file made, renamed, removed) each may be there or not, whatever became of the others; a rename
  happens whole or not at all.
- When the recording begins, the folder is empty, and flushed.

Not in it: later writes to a file without the earlier ones, a length without its bytes, damage to
what was flushed, names that move from one folder to another.
"""

from __future__ import annotations

import itertools
import math
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from rcr_probes.contents import Change, File
from rcr_probes.vocabulary import Loss

MOST = 48  # states that are explored at one point, unless others are asked for
LARGEST = 100_000  # ways in which the names of one folder that are tied may stand
HERE = "."  # the folder itself

State = Mapping[str, bytes | None]
"""Path below the folder → what the file holds; None of a folder."""


class BeyondModel(Exception):
    """The operations hold something that the model has no states for."""

    code = "BEYOND_MODEL"


@dataclass(frozen=True, slots=True)
class Explored:
    """The states that were explored, and how many there are besides.

    Attributes:
        states: distinct; the first is what stood there when the power went.
        unexplored: how many distinct states the model has besides.
    """

    states: tuple[State, ...]
    unexplored: int


def explored(changes: Sequence[Change], most: int = MOST) -> Explored:
    """The states that the power may leave after these changes, the most telling ones first.

    All is there; nothing is that was not flushed; one thing is lost alone; all is lost from some
    moment on, as in a file system that keeps the order; two things are lost. Distinct ones alone.

    Args:
        changes: in their order.
        most: how many states are explored.

    Raises:
        BeyondModel: the model has no states for these changes.
    """
    disk = _Disk(changes)
    found: dict[tuple[tuple[str, bytes | None], ...], State] = {}
    for lost in disk.losses():
        state = disk.state(lost)
        found.setdefault(tuple(sorted(state.items())), state)
        if len(found) == most:
            break
    return Explored(tuple(found.values()), disk.root.count() - len(found))


def standing(changes: Sequence[Change]) -> State:
    """What stands there while the power is on."""
    disk = _Disk(changes)
    return disk.state(_NOTHING)


def told(changes: Sequence[Change], state: State) -> tuple[tuple[str, Loss], ...]:
    """In words, what of a state is not as it stood when the power went; each path, in order.

    Of a folder that is gone, what lay in it is not told besides.
    """
    disk = _Disk(changes)
    live = disk.state(_NOTHING)
    words: list[tuple[str, Loss]] = []
    for path in sorted({*live, *state}):
        if any(path.startswith(f"{gone}/") for gone, word in words if word == "gone"):
            continue
        if path not in state:
            words.append((path, "gone"))
        elif path not in live:
            words.append((path, "back"))
        elif state[path] != live[path]:
            words.append((path, disk.word(state[path] or b"", live[path] or b"")))
    return tuple(words)


@dataclass(eq=False, slots=True)
class _Folder:
    """A folder: its entries when it was flushed, and what was done to them since."""

    flushed: dict[str, _Node] = field(default_factory=dict)
    since: list[_Renamed] = field(default_factory=list)

    def entries(self, lost: frozenset[_Renamed] = frozenset()) -> dict[str, _Node]:
        entries = dict(self.flushed)
        for change in self.since:
            if change not in lost:
                _apply(entries, change)
        return entries

    def flush(self) -> None:
        self.flushed, self.since = self.entries(), []

    def count(self) -> int:
        """How many distinct states there are of it and all below it."""
        return math.prod(self._count(names) for names in self._tied())

    def _tied(self) -> list[set[str]]:
        """Its names, together where one change touches several: they do not stand freely."""
        groups = [{name} for name in self.flushed]
        for change in self.since:
            touched = {*change.entries, *change.beside}
            joined = [group for group in groups if group & touched]
            groups = [group for group in groups if not group & touched]
            groups.append(touched.union(*joined))
        return groups

    def _count(self, names: set[str]) -> int:
        named = ", ".join(sorted(names))
        start = tuple(sorted((n, node) for n, node in self.flushed.items() if n in names))
        ways: dict[tuple[tuple[str, _Node], ...], None] = {start: None}
        for change in self.since:
            if not names & change.entries.keys():
                continue
            for way in list(ways):
                entries = dict(way)
                _apply(entries, change)
                ways[tuple(sorted(entries.items(), key=lambda entry: entry[0]))] = None
            if len(ways) > LARGEST:
                raise BeyondModel(f"the names {named} changed too often")
        every = {node for way in ways for _, node in way}
        options = {file: file.options() for file in every if isinstance(file, File)}
        of_files: set[tuple[tuple[str, bytes], ...]] = set()
        with_folders = 0
        for way in ways:
            nodes = list(dict.fromkeys(node for _, node in way))
            files = [node for node in nodes if isinstance(node, File)]
            many = math.prod(len(options[file]) for file in files)
            if len(files) < len(nodes):
                below = [node.count() for node in nodes if isinstance(node, _Folder)]
                with_folders += many * math.prod(below)
                continue
            if many <= LARGEST:  # else nobody would wait until they are all made
                for contents in itertools.product(*(options[file] for file in files)):
                    given = dict(zip(files, contents, strict=True))
                    of_files.add(tuple((n, given[f]) for n, f in way if isinstance(f, File)))
            if max(many, len(of_files)) > LARGEST:
                raise BeyondModel(f"the names {named} may stand in too many ways")
        return len(of_files) + with_folders


_Node = File | _Folder


@dataclass(eq=False, frozen=True, slots=True)
class _Renamed:
    """One change of a folder's entries: name → what stands there after it; ``beside`` is tied."""

    number: int
    entries: dict[str, _Node | None]
    beside: tuple[str, ...] = ()


def _apply(entries: dict[str, _Node], change: _Renamed) -> None:
    for name, node in change.entries.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


@dataclass(frozen=True, slots=True)
class _Lost:
    """What a state lacks: changes of entries, and of files the changes after a first part."""

    names: frozenset[_Renamed] = frozenset()
    data: Mapping[File, tuple[int, bool]] = field(default_factory=dict)


_NOTHING = _Lost()


class _Disk:
    """The folder after some changes, and what of them was not flushed."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self.root = _Folder()
        self._files: list[File] = []
        self._written: list[tuple[int, File, int]] = []  # number of a change, file, place in it
        for number, change in enumerate(changes):
            self._do(number, change)
        self._folders = list(_folders(self.root))

    def _do(self, number: int, change: Change) -> None:
        match change.do:
            case "flush":
                node = self._node(change.path)
                if isinstance(node, File):
                    self._written = [one for one in self._written if one[1] is not node]
                if node is not None:
                    node.flush()
            case "write" | "cut":
                node = self._node(change.path)
                if not isinstance(node, File):
                    raise BeyondModel(f"{change.path} is written to, and is no file that was made")
                self._written.append((number, node, len(node.since)))
                node.change(change)
            case "make" | "create":
                if self._node(change.path) is None:
                    made: _Node = _Folder() if change.do == "make" else File()
                    if isinstance(made, File):
                        self._files.append(made)
                    folder, name = self._place(change.path)
                    folder.since.append(_Renamed(number, {name: made}))
            case "remove":
                folder, name = self._place(change.path)
                folder.since.append(_Renamed(number, {name: None}))
            case "rename" | "link":
                self._move(number, change)

    def _move(self, number: int, change: Change) -> None:
        (folder, old), (target, new) = self._place(change.path), self._place(change.to)
        node = self._node(change.path)
        if target is not folder:
            raise BeyondModel(f"{change.path} goes to another folder, as {change.to}")
        if node is None:
            raise BeyondModel(f"{change.path} is not there, and gets the name {change.to}")
        if old == new:
            return
        entries: dict[str, _Node | None] = {new: node}
        if change.do == "rename":
            entries[old] = None
        folder.since.append(_Renamed(number, entries, (old,)))

    def _node(self, path: str) -> _Node | None:
        if path == HERE:
            return self.root
        folder, name = self._place(path)
        return folder.entries().get(name)

    def _place(self, path: str) -> tuple[_Folder, str]:
        above, name = posixpath.split(path)
        folder = self._node(above or HERE)
        if not isinstance(folder, _Folder):
            raise BeyondModel(f"{path} lies in no folder that was made")
        return folder, name

    def state(self, lost: _Lost) -> State:
        """What stands there without what was lost."""
        return dict(self._below(self.root, "", lost))

    def _below(
        self, folder: _Folder, above: str, lost: _Lost
    ) -> Iterator[tuple[str, bytes | None]]:
        for name, node in folder.entries(lost.names).items():
            if isinstance(node, _Folder):
                yield f"{above}{name}", None
                yield from self._below(node, f"{above}{name}/", lost)
            else:
                yield f"{above}{name}", node.holds(*lost.data.get(node, (None, False)))

    def losses(self) -> Iterator[_Lost]:
        """What may be lost together, in the order of ``explored``; states may come up twice."""
        yield _NOTHING
        yield self._from(0)
        single = [_Lost(frozenset({one})) for folder in self._folders for one in folder.since]
        single += [_Lost(data={file: part}) for file in self._files for part in file.parts()]
        yield from single
        numbers = [one.number for folder in self._folders for one in folder.since]
        numbers += [number for number, _, _ in self._written]
        yield from (self._from(number) for number in sorted(numbers, reverse=True))
        for one, other in itertools.combinations(single, 2):
            if not one.data.keys() & other.data.keys():
                yield _Lost(one.names | other.names, {**one.data, **other.data})

    def _from(self, number: int) -> _Lost:
        """All that was not flushed is lost from the change of this number on."""
        names = [one for folder in self._folders for one in folder.since if one.number >= number]
        data: dict[File, tuple[int, bool]] = {}
        for at, file, place in self._written:
            if at >= number:
                data.setdefault(file, (place, False))
        return _Lost(frozenset(names), data)

    def word(self, state: bytes, live: bytes) -> Loss:
        """What a file holds, beside what it held."""
        if not state:
            return "empty"
        digest = sha256(state).digest()
        whole = any(digest in file.wholes for file in self._files)
        if live.startswith(state):
            return "shorter" if whole else "cut"
        return "older" if whole else "older_cut"


def _folders(folder: _Folder) -> Iterator[_Folder]:
    """A folder, and every folder that is or was below it."""
    yield folder
    nodes = [n for change in folder.since for n in change.entries.values()]
    for node in dict.fromkeys([*folder.flushed.values(), *nodes]):
        if isinstance(node, _Folder):
            yield from _folders(node)

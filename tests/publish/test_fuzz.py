"""Whatever is put before import, check and show: an answer or a clear error, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rcr_probes.cli import main
from rcr_probes.evidence import archive
from rcr_probes.publish import layout
from tests.evidence import made
from tests.publish import packaged

pytestmark = pytest.mark.timeout(60)  # for all examples of one test

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["fault", "recover", "EISDIR", "done", "\u202e", "E1", 1e300, "none", {}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
NAMES = st.sampled_from(["a", "more.json", "Small", "x" * 255, "a b", "\u202e", "check.py", "a."])
BYTES = st.binary(max_size=40) | st.sampled_from([b"", b"\n", b"{", b"[" * 5000, b"\xff\xfe"])


@dataclass(frozen=True)
class Change:
    """One thing that happens to a file of a folder: to its bytes, its JSON, its name, its kind."""

    way: str
    chosen: int
    at: int
    data: bytes
    name: str
    value: Any

    def __call__(self, folder: Path) -> None:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
        if files:
            path = files[self.chosen % len(files)]
            WAYS[self.way](path, self.at, self.data, self.name, self.value)


def _bytes(path: Path, at: int, data: bytes, *_: object) -> None:
    held = path.read_bytes()
    at %= len(held) + 1
    path.write_bytes(held[:at] + data + held[at + len(data) :])


def _cut(path: Path, at: int, *_: object) -> None:
    held = path.read_bytes()
    path.write_bytes(held[: at % (len(held) + 1)])


def _value(path: Path, at: int, _: bytes, __: str, value: Any) -> None:
    """Another value in the place of one, in JSON or in one line of it."""
    lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
    number = at % len(lines) if lines else 0
    try:
        root = json.loads(lines[number])
    except (ValueError, IndexError, RecursionError):
        return
    places = list(_places(root))
    if not places:
        return
    held, key = places[at % len(places)]
    held[key] = value
    if path.suffix == ".jsonl":
        compact = json.dumps(root, ensure_ascii=False, separators=(",", ":"))
        lines[number] = compact.encode("utf-8", "replace")
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    else:
        text = json.dumps(root, ensure_ascii=False, indent=2) + "\n"
        path.write_bytes(text.encode("utf-8", "replace"))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(inner)


def _doubled(path: Path, at: int, *_: object) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, *lines[at % (len(lines) + 1) :]]))


def _gone(path: Path, *_: object) -> None:
    path.unlink()


def _renamed(path: Path, _: int, __: bytes, name: str, *___: object) -> None:
    with contextlib.suppress(OSError):
        path.rename(path.with_name(name))


def _added(path: Path, _: int, data: bytes, name: str, *__: object) -> None:
    added = path.parent / name
    with contextlib.suppress(OSError):
        added.unlink(missing_ok=True)  # nothing is written where a link leads
        added.write_bytes(data)


def _linked(path: Path, *_: object) -> None:
    """A link that leads out of what was given, to what must stay as it is."""
    given = next(folder for folder in path.parents if folder.name == "given")
    path.unlink()
    path.symlink_to(os.path.relpath(given.parent / "outside", path.parent))


def _folder(path: Path, *_: object) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path, *_: object) -> None:
    path.unlink()
    os.mkfifo(path)


WAYS: dict[str, Callable[..., None]] = {
    "bytes": _bytes,
    "cut": _cut,
    "value": _value,
    "doubled": _doubled,
    "gone": _gone,
    "renamed": _renamed,
    "added": _added,
    "linked": _linked,
    "folder": _folder,
    "pipe": _pipe,
}


CHANGES = st.lists(
    st.builds(
        Change,
        way=st.sampled_from(list(WAYS)),
        chosen=st.integers(0, 100),
        at=st.integers(0, 1_000_000),
        data=BYTES,
        name=NAMES,
        value=VALUES,
    ),
    min_size=1,
    max_size=3,
)


def refit(folder: Path, make: Callable[[Path], object]) -> None:
    """Make digests fit, where what is left is something that has them.

    Whoever opened a pipe would wait, and who wrote to a link would write where it leads.
    """
    if not any(path.is_fifo() or path.is_symlink() for path in folder.rglob("*")):
        with contextlib.suppress(Exception):
            make(folder)


def relist(folder: Path) -> None:
    """The manifest of a package of the original form."""
    found = packaged.digests(folder)
    made.write_manifest(folder, [{"path": p, "sha256": d} for p, d in found.items()])


def survives(*words: object) -> int:
    """One command: no exception, a known exit code, and an error that says cause and remedy."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    assert code in (0, 1, 2), words
    if code == 2 or (code == 1 and words[0] not in ("check", "compare")):
        assert re.match(r"rcr: \S.*\n  \S", err.getvalue(), re.DOTALL), err.getvalue()
    assert "Traceback" not in err.getvalue()
    return code


@contextlib.contextmanager
def world(source: Path) -> Iterator[Path]:
    """A folder of its own with a copy of the source; whatever else is in it must stay as it is."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "outside").write_text("mine")
        shutil.copytree(source, place / "given")
        yield place
        assert (place / "outside").read_text() == "mine"
        assert {p.name for p in place.iterdir()} <= {"outside", "given", "into", "given.zip"}


@given(made_so=CHANGES, fits=st.booleans())
@settings(max_examples=80)
def test_a_package_is_taken_in_or_refused(
    published: Path, made_so: list[Change], fits: bool
) -> None:
    """As a folder and as a .zip; also where every digest was made to fit afterwards."""
    with world(published) as place:
        folder = place / "given"
        for change in made_so:
            change(folder)
        if fits:
            refit(folder, packaged.reseal)
        code = survives("check", folder)
        if layout.is_package(folder):
            assert survives("import", folder, "--into", place / "into") == code
            assert (place / "into").exists() == (code == 0)


@given(data=st.data())
@settings(max_examples=60)
def test_a_zip_is_taken_in_or_refused(published: Path, data: st.DataObject) -> None:
    """Bytes of a .zip that were changed, cut or put together anew."""
    files = {p.relative_to(published).as_posix(): p.read_bytes() for p in _small(published)}
    with world(published) as place:
        zipped = place / "given.zip"
        archive.write(zipped, files)
        for _ in range(data.draw(st.integers(1, 4))):
            way = WAYS[data.draw(st.sampled_from(["bytes", "cut", "doubled"]))]
            way(zipped, data.draw(st.integers(0, 10**6)), data.draw(st.binary(max_size=30)))
        survives("check", zipped)
        survives("import", zipped, "--into", place / "into")


def _small(folder: Path) -> Iterator[Path]:
    """Files that leave the names of a .zip a large part of it."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size < 20_000:
            yield path


@given(made_so=CHANGES, fits=st.booleans())
@settings(max_examples=60)
def test_an_evidence_folder_is_shown_or_refused(
    source: Path, made_so: list[Change], fits: bool
) -> None:
    """Checked, shown in every form, and published: by what it holds, or with what is wrong."""
    with world(source / "small") as place:
        folder = place / "given"
        for change in made_so:
            change(folder)
        if fits:
            refit(folder, made.reseal)
        survives("check", folder)
        for form in ((), ("--json",), ("--csv",), ("--markdown",)):
            survives("show", folder, *form)
        survives("explain", folder, "resume")
        survives("compare", folder, source / "control")


@given(made_so=CHANGES)
@settings(max_examples=40)
def test_a_folder_of_evidence_is_checked_with_its_claims(
    source: Path, made_so: list[Change]
) -> None:
    """Claims, too, may hold anything."""
    with world(source) as place:
        for change in made_so:
            change(place / "given")
        survives("check", place / "given")
        survives("check", place / "given", "--lang", "zh")
        survives("show", place / "given", "--claims")


@given(made_so=CHANGES, fits=st.booleans())
@settings(max_examples=50)
def test_a_package_of_the_original_form_is_taken_in_or_refused(
    made_so: list[Change], fits: bool
) -> None:
    """The form of the series, which others write."""
    with tempfile.TemporaryDirectory() as temporary:
        package = made.package(Path(temporary, "package"))
        with world(package) as place:
            folder = place / "given"
            for change in made_so:
                change(folder)
            if fits:
                refit(folder, relist)
            survives("import", folder, "--into", place / "into")

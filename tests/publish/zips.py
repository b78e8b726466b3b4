"""A .zip of a folder, or of any entries, and what is said of a package that is not taken in."""

from __future__ import annotations

import re
import stat
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from rcr_probes.cli import main

Captured = pytest.CaptureFixture[str]


def zipped(folder: Path, place: Path, top: str = "") -> Path:
    """A folder as a .zip, under a folder of its own where one is named."""
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(folder.rglob("*")):
            made.write(path, f"{top}{path.relative_to(folder).as_posix()}")
    return place


def entries(place: Path, held: Mapping[str, bytes], mode: int = stat.S_IFREG | 0o644) -> Path:
    """A .zip with entries of any name."""
    with warnings.catch_warnings(), zipfile.ZipFile(place, "w") as made:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in held.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            made.writestr(entry, data)
    return place


def refused(capsys: Captured, tmp_path: Path, package: Path, code: int = 1) -> str:
    """What is said of a package that is not taken in; nothing is written."""
    before = listed(tmp_path)
    assert main(["import", str(package), "--into", str(tmp_path / "into")]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert re.match(r"rcr: .+\n  .+", err), err
    assert listed(tmp_path) == before
    return err


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

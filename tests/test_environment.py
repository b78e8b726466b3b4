"""environment.yml and constraints.txt say the same as pyproject.toml, which is the source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from rcr_probes.errors import installing

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
PINS = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
DIRECT = [
    requirement
    for written in [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]
    if (requirement := Requirement(written)).name != PROJECT["name"]
]


def test_conda_has_the_name_and_the_python_of_the_project() -> None:
    """Whoever prefers conda gets an environment of the same name and the same oldest Python."""
    assert CONDA["name"] == PROJECT["name"]
    assert f"python{PROJECT['requires-python']}" in CONDA["dependencies"]


def test_conda_installs_the_project_under_the_constraints() -> None:
    """Everything but Python comes from the project itself, with extras that it has."""
    (from_pip,) = (entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict))
    constraints, project = from_pip
    assert constraints == "-c constraints.txt"
    match = re.fullmatch(r"-e \.\[([a-z,]+)\]", project)
    assert match
    assert set(match[1].split(",")) <= set(EXTRAS)


def test_a_page_has_the_makefile_install_an_extra() -> None:
    """With pip alone, this folder's absolute path is written where a C locale cannot read it."""
    named = set()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        told = page.read_text(encoding="utf-8")
        assert not re.search(r"pip\S* install", told), page
        named |= {*",".join(re.findall(r"make with-([a-z,]+)", told)).split(",")} - {""}
    assert {"dask", "parquet", "publish"} <= named <= set(EXTRAS)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", [*(f"with-{extra}" for extra in EXTRAS), "with-dask,parquet"])
def test_the_makefile_installs_each_extra_and_writes_a_path_that_any_locale_reads(
    target: str,
) -> None:
    """Under the constraints; and after pip the path of this folder is a relative one."""
    words = ["make", "--no-print-directory", "--dry-run", "--always-make", target]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(words, cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    *_, pip, relative = (line for line in done.stdout.splitlines() if not line.startswith("touch"))
    names = target.removeprefix("with-")
    assert pip.endswith(f"install --constraint constraints.txt --editable '.[{names}]'")
    assert relative.startswith("echo ../../../.. > ")


@pytest.mark.parametrize("made", [True, False])
def test_who_has_no_environment_of_the_makefile_is_told_to_ask_pip(
    made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the Python which runs, wherever it lies; it is the Makefile's where its stamp is."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/my env/bin/python")
    if made:
        stamp = re.findall(r"^\.venv/(\w+):$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        (tmp_path / stamp[0]).touch()
        assert installing("rq") == "make with-rq"
    else:
        asked = "'/my env/bin/python' -m pip install -c constraints.txt -e '.[rq]'"
        assert installing("rq") == asked


def test_a_pin_is_one_name_and_one_version() -> None:
    """No path, host, option or range: the file means the same on every machine."""
    assert PINS
    assert [pin for pin in PINS if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_a_direct_dependency_is_pinned_to_a_version_that_it_allows(
    requirement: Requirement,
) -> None:
    """`make lock` was run after the last change of the dependencies."""
    versions = {canonicalize_name(pin.split("==")[0]): pin.split("==")[1] for pin in PINS}
    assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


def test_no_pin_wants_a_newer_python_than_the_project() -> None:
    """`make lock` may run on one that is a little newer: what is installed here is looked at."""
    oldest = f"{PROJECT['requires-python'].removeprefix('>=')}.0"
    pinned = [one for one in distributions() if f"{one.name}=={one.version}" in PINS]
    said = [one.metadata for one in pinned if "Requires-Python" in one.metadata]
    wants = {one["Name"]: one["Requires-Python"] for one in said}
    assert wants
    assert {n: want for n, want in wants.items() if oldest not in SpecifierSet(want)} == {}

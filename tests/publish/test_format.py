"""docs/evidence-format.md says what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rcr_probes.evidence import check, form, names
from rcr_probes.publish import layout

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "evidence-format.md").read_text(encoding="utf-8")


def test_the_document_names_every_file(published: Path) -> None:
    """Of an evidence folder and of a package, each in a table."""
    cells = re.findall(r"^\| (`[^|]*) \|", TEXT, re.MULTILINE)
    told = {name for cell in cells for name in re.findall("`([^`]+)`", cell)}
    assert set(form.FILES) | set(layout.NEEDED) | {layout.SIGNATURE} <= told
    for path in published.rglob("*"):
        top = path.relative_to(published).parts[0]
        assert any(name.startswith(top) for name in told), top


def test_the_document_gives_the_limits_of_the_code() -> None:
    """In numbers that a reader can hold a package against."""
    for limit in (
        f"{names.MOST_FILES:,} files",
        f"{names.MOST_BYTES >> 20} MiB in one",
        f"{names.MOST_READ >> 20} MiB where it is read as a whole",
        f"after {check.MOST:,} findings",
        f"{names.MOST_IN_ALL >> 20} MiB in all",
        f"{form.LONGEST >> 20} MiB; nesting",
    ):
        assert limit in TEXT


def test_the_digest_over_facts_is_made_as_the_document_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its few lines run, over the committed evidence, and fail over a digest that is not theirs."""
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(program, {})
    with pytest.raises(AssertionError):
        exec(program.replace('"judgement")', '"circumstances")'), {})

"""Evidence with claims and a guide, as publishing finds it, and what a forger does to a package."""

from __future__ import annotations

import hashlib
import html
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from rcr_probes.cli import main
from rcr_probes.evidence import claims, form
from rcr_probes.evidence.rows import Row, row
from rcr_probes.publish import layout
from rcr_probes.publish.crate import described
from rcr_probes.report.texts import text
from tests.evidence import made


class Given(TypedDict):
    """What is said of the origin where no git tells it."""

    date: str
    commit: str


ORIGIN = Given(date="2026-01-02", commit="0123456789abcdef0123456789abcdef01234567")
CLAIMS = """\
[[claim]]
id = "P3"
en = "After P3 & its recovery, effects: {value}."
zh = "P3 恢复之后，效果数为 {value}。"
evidence = "small"
where = { point = "completion_audit", policy = "resume" }
take = "effects_after_recovery"
expect = 2
not_shown_en = "Anything else."
not_shown_zh = "其他。"
source = "made by hand"

[[claim]]
id = "control"
en = "Cells of the control: {value}."
zh = "对照的单元数：{value}。"
evidence = "control"
where = {}
take = "count"
expect = 1
not_shown_en = "Anything else."
not_shown_zh = "其他。"
source = "made by hand"
"""
TABLE = """
[[table]]
name = "verdicts"
page = "README.md"
evidence = "small"
where = { policy = "resume" }
"""
CAPTURED = {"small": (made.CONTROL, made.P3, made.LEFT), "control": (made.CONTROL,)}


def evidence(folder: Path) -> Path:
    """Sound evidence in two folders, with two claims, and a guide in both languages."""
    rows: dict[str, list[Row]] = {}
    for name, cells in CAPTURED.items():
        captures = [made.capture(cell, 100 * n) for n, cell in enumerate(cells, 1)]
        made.write(folder / name, captures, name)
        rows[name] = [row(capture) for capture in captures]
    (folder / layout.CLAIMS).write_text(CLAIMS + TABLE, encoding="utf-8")
    (folder / layout.GUIDE).mkdir()
    for page, lang in layout.PAGES.items():
        (folder / layout.GUIDE / page).write_text(guide(rows, lang), encoding="utf-8")
    return folder


def guide(rows: dict[str, list[Row]], lang: str) -> str:
    """A page in the form of the guide's: a list of the claims, then their table."""
    outcomes = [claims.evaluate(c, rows[c.evidence]) for c in claims.parsed(CLAIMS, "claims")]
    said = {o.claim.id: html.escape(claims.said(o.claim, lang, o.value)) for o in outcomes}
    listed = [
        f'<li><bdi>{text}</bdi> <a href="#claim-{name}"><bdi>{name}</bdi></a></li>'
        for name, text in said.items()
    ]
    table = [
        f'<tr id="claim-{o.claim.id}"><th scope="row"><strong><bdi>{o.claim.id}</bdi></strong>'
        f" <bdi>{said[o.claim.id]}</bdi> {_rests(o)}\n{_notes(o.claim, lang)}</th>"
        f'<td class="n"><bdi>{o.value}</bdi></td>'
        f'<td class="n"><bdi>{o.claim.expect}</bdi></td><td>yes</td></tr>'
        for o in outcomes
    ]
    return "\n".join(
        [
            f'<!doctype html><html lang="{lang}"><meta charset="utf-8"><body>',
            "<p>Numbers that no claim makes: 12345.</p>",
            '<ul class="claims">',
            *listed,
            "</ul>",
            "<table><tbody>",
            *table,
            "</tbody></table></body></html>",
        ]
    )


def _rests(outcome: claims.Outcome) -> str:
    name = outcome.claim.evidence
    links = [f'<a href="#capture-{name}-{one}">{one + 1}</a>' for one in outcome.numbers]
    return f'<span class="refs"><bdi>{name}</bdi> {", ".join(links)}</span>'


def _notes(claim: claims.Claim, lang: str) -> str:
    said = text("claim.not_shown", lang, said=claim.not_shown(lang))
    source = text("claim.source", lang, source=claim.source)
    return f'<p class="note">{said}</p>\n<p class="note">{source}</p>'


@dataclass(frozen=True)
class Keys:
    """Files with keys in PEM: a pair, and another's public one."""

    private: Path
    public: Path
    other: Path


def keys(folder: Path) -> Keys:
    """Two new key pairs, of which one is kept whole."""
    own, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    made = Keys(folder / "key.pem", folder / "key.pub", folder / "other.pub")
    made.private.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for path, key in ((made.public, own), (made.other, other)):
        path.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
    return made


def replace(path: Path, old: str, new: str) -> None:
    """Change one place in a file, and nothing that depends on it."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1, (path.name, old)
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="")


def reseal(folder: Path, *, provenance: bool = True, crate: bool = True) -> None:
    """Make every digest of a package fit what it holds now, as a careful forger would.

    Provenance and the metadata are made to fit, too, where nothing else is wanted.
    """
    for evidence in (folder / layout.EVIDENCE).iterdir():
        if form.holds_evidence(evidence):
            made.reseal(evidence)
    if provenance:
        _provenance(folder)
    if crate:
        _crate(folder)
    for name, write in ((layout.MANIFEST, layout.manifest), (layout.SUMS, layout.sums)):
        (folder / name).write_bytes(write(digests(folder)))


def _provenance(folder: Path) -> None:
    path = folder / layout.PROVENANCE
    said = json.loads(path.read_text(encoding="utf-8"))
    for name, told in said["evidence"].items():
        for key, file in (("captures_sha256", "captures.jsonl"), ("plan_sha256", "plan.json")):
            data = (folder / layout.EVIDENCE / name / file).read_bytes()
            told[key] = hashlib.sha256(data).hexdigest()
    text = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="")


def _crate(folder: Path) -> None:
    """What a forger does who knows how the metadata follow from the rest."""
    names = form.folders(folder / layout.EVIDENCE)
    sizes = {path: (folder / path).stat().st_size for path in digests(folder)}
    sizes.pop(layout.CRATE, None)
    day = json.loads((folder / layout.PROVENANCE).read_bytes())["date"]
    made = described(sizes, [path.name for path in names], str(day))
    (folder / layout.CRATE).write_bytes(made)


def digests(folder: Path) -> dict[str, str]:
    """Path → SHA-256 of every file of a package."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def ours(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str]]:
    """What ``rcr check`` exits with, and its lines."""
    code = main(["check", *map(str, words)])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out.splitlines()


def theirs(folder: Path, *words: str) -> tuple[int, list[str]]:
    """The same of the package's own check.py, by a Python that knows nothing but its library."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", folder / layout.CHECKER, *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change the JSON of a small file, in its own form."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="")


def places(lines: Sequence[str]) -> list[str]:
    """The files that findings name, without their lines and cells."""
    return sorted({line.split(": ")[0].split(":")[0].split(" ")[0] for line in lines[:-1]})

"""Build the guide's pages: run its notebook, and put what it shows into one file a language."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rcr_probes.errors import NotInstalled
from rcr_probes.evidence import write
from rcr_probes.evidence.claims import PAGES
from rcr_probes.report.execute import executed
from rcr_probes.report.guide.material import read
from rcr_probes.report.texts import LANGS, text

NOTEBOOK = "00_evidence_guide"
NAMES: Mapping[str, str] = {"en": "English", "zh": "中文"}  # how a language calls itself
_FONT = "NotoSansSC-subset.woff2"
_SHOWN = ("skip", "contents", "language", "about", "description", "top")
_SCRIPT = ("filter", "shown", "sort", "peek", "sideways")  # what only the script says


def build(
    into: str | os.PathLike[str],
    langs: Iterable[str] = LANGS,
    evidence: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write the guide's pages into a folder: the same bytes on every run.

    Args:
        into: the folder; it is made where there is none.
        langs: one page is written for each.
        evidence: a folder of evidence folders with its claims; the repository's own when None.

    Returns:
        The pages that were written.

    Raises:
        UnknownName: a language that is not there.
        NotEvidence: the folder has no claims, or no evidence.
        EvidenceError: some of it cannot be read, or was changed after it was sealed.
        RcrError: the notebook is not here, what builds pages is not installed, or a cell failed.
        OSError: the folder cannot be written.
    """
    if evidence is not None:
        read(Path(evidence), LANGS[0])  # what is wrong with it is told before a kernel starts
    made = {PAGES[lang]: page(lang, evidence) for lang in langs}
    folder = Path(into)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        write.put(folder / name, [data])
    return [folder / name for name in made]


def page(lang: str, evidence: str | os.PathLike[str] | None = None) -> bytes:
    """One page of the guide, whole.

    Raises:
        As ``build``.
    """
    chosen: dict[str, object] = {"lang": lang}
    if evidence is not None:
        chosen["evidence"] = os.fspath(evidence)
    return rendered(executed(NOTEBOOK, chosen), lang)


def rendered(notebook: Any, lang: str) -> bytes:
    """What an executed notebook shows, in our template."""
    try:
        from nbconvert.exporters import TemplateExporter
    except ModuleNotFoundError as missing:
        raise NotInstalled(
            f"What builds pages is not installed ({missing.name}).", "notebooks"
        ) from None
    with as_file(files("rcr_probes") / "report" / "guide") as here:
        exporter = TemplateExporter(  # type: ignore[no-untyped-call]
            template_name="page",
            extra_template_basedirs=[str(here)],
            file_extension=".html",
        )
        made, _ = exporter.from_notebook_node(notebook, resources={"guide": _frame(here, lang)})
    return (made.rstrip("\n") + "\n").encode()


def _frame(here: Path, lang: str) -> dict[str, Any]:
    """What stands around the sections: words, style, script, font."""
    style, script = ((here / "page" / name).read_text("utf-8") for name in ("page.css", "page.js"))
    font = (here.parent / "fonts" / _FONT).read_bytes()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {
        "lang": lang,
        "languages": [{"lang": one, "page": PAGES[one], "name": NAMES[one]} for one in LANGS],
        "title": text("guide.page.title", lang),
        "says": {name: text(f"guide.page.{name}", lang) for name in _SHOWN},
        "script_says": {name: text(f"guide.page.{name}", lang) for name in _SCRIPT},
        "style": style,
        "script": script,
        "script_digest": f"sha256-{digest}",
        "font": base64.b64encode(font).decode(),
    }

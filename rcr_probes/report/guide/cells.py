"""What the cells of the guide's notebook call: read the evidence, show a section of it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from IPython.display import publish_display_data

from rcr_probes.errors import UnknownName
from rcr_probes.report.guide import material
from rcr_probes.report.guide.material import Material
from rcr_probes.report.texts import text


def read(evidence: str | os.PathLike[str], lang: str) -> Material:
    """Read a folder of evidence folders, with the claims beside them.

    Raises:
        NotEvidence: the folder has no claims, or no evidence.
        EvidenceError: one of them cannot be read, or captures were changed after they were sealed.
    """
    return material.read(Path(evidence), lang)


def show(guide: Material, name: str) -> None:
    """Display one section of the guide; nothing where its evidence is not there.

    Raises:
        UnknownName: there is no such section.
    """
    # Where its font cache is new, matplotlib logs a path of this machine into the notebook.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from rcr_probes.report.guide.sections import SECTIONS

    if name not in SECTIONS:
        raise UnknownName("section", name, SECTIONS)
    body = SECTIONS[name](guide)
    if body is None:
        return
    title = text(f"guide.section.{name}", guide.lang)
    data = {"text/html": body.strip(), "text/plain": title}
    about = {"text/html": {"section": name, "title": title}}
    publish_display_data(data, about)  # type: ignore[no-untyped-call]

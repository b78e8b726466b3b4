"""The font that ships with the package covers every text, and comes with its licence."""

from __future__ import annotations

from fontTools.ttLib import TTFont

from scripts import subset_font
from tests.pinned import written_by


def test_every_character_of_every_text_has_a_glyph() -> None:
    """No label turns into a box; where this fails, `make font` helps."""
    for path in (subset_font.FONT, subset_font.PAGE_FONT):
        covered = {chr(code) for code in TTFont(path).getBestCmap()}
        assert subset_font.characters() - covered == set()


@written_by("brotli", "fonttools")
def test_the_font_is_what_the_script_makes() -> None:
    """The committed fonts and licence are the script's own bytes: `make font` changes nothing."""
    font, page_font, licence = subset_font.cut(subset_font.characters())
    assert subset_font.FONT.read_bytes() == font
    assert subset_font.PAGE_FONT.read_bytes() == page_font
    assert subset_font.LICENCE.read_text(encoding="utf-8") == licence


def test_the_licence_stands_beside_the_font() -> None:
    """The licence wants its text and the copyright notice with every copy."""
    licence = subset_font.LICENCE.read_text(encoding="utf-8")
    assert "Adobe" in licence
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence

"""Cut Noto Sans SC down to the characters that the texts use, to the same bytes on every run.

Figures take it as OpenType, pages as WOFF2, which is smaller; both have the same glyphs.
"""

from __future__ import annotations

import io
import string
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import pylopdf_fonts_zh_cn
from fontTools import subset
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "rcr_probes" / "report"
TEXTS = (
    REPORT / "texts.toml",
    REPORT / "guide" / "texts.toml",
    ROOT / "evidence" / "claims.toml",
)
FONT = REPORT / "fonts" / "NotoSansSC-subset.otf"
PAGE_FONT = FONT.with_suffix(".woff2")
LICENCE = REPORT / "fonts" / "OFL.txt"

# Not the name of the whole font: where that one is installed too, a figure that asks for the
# family by name would depend on the machine.
FAMILY = "Noto Sans SC Subset"

PRINTABLE = set(string.printable) - set(string.whitespace) | {" "}
# What figures write without a text of their own, such as the signs of the article's inequality.
SYMBOLS = set("≠≤≥×→←↑↓·•…–—✓①②③")


def strings(value: object) -> Iterator[str]:
    """Every string in a TOML document, however deep; keys are not shown to readers."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from strings(child)
    elif isinstance(value, list):
        for child in value:
            yield from strings(child)


def characters(texts: Iterable[Path] = TEXTS) -> set[str]:
    """All that the subset must cover: printable ASCII, the symbols, and what the texts use."""
    read = (tomllib.loads(path.read_text(encoding="utf-8")) for path in texts)
    used = {character for document in read for said in strings(document) for character in said}
    return PRINTABLE | SYMBOLS | used - set(string.whitespace)


def cut(wanted: set[str]) -> tuple[bytes, bytes, str]:
    """Cut the font and state its licence.

    Returns:
        The font as OpenType and as WOFF2, and the copyright notice followed by the licence's text,
        both of which the licence wants beside every copy.

    Raises:
        SystemExit: the source font has no glyph for a wanted character.
    """
    # The source's own timestamp is kept: a new one would change the bytes with every run.
    font = TTFont(pylopdf_fonts_zh_cn.sans_path(), recalcTimestamp=False)
    if missing := wanted - {chr(code) for code in font.getBestCmap()}:
        listed = " ".join(f"{character} (U+{ord(character):04X})" for character in sorted(missing))
        raise SystemExit(f"Noto Sans SC has no glyph for: {listed}. Use other characters.")
    notice = font["name"].getDebugName(0)

    options = subset.Options(
        hinting=False,
        layout_features=["kern"],
        name_IDs=[0, 1, 2, 4, 5, 6, 7, 13, 14],
    )
    cutter = subset.Subsetter(options)
    cutter.populate(text="".join(sorted(wanted)))
    cutter.subset(font)
    for name_id, name in {1: FAMILY, 4: FAMILY, 6: FAMILY.replace(" ", "")}.items():
        font["name"].setName(name, name_id, platformID=3, platEncID=1, langID=0x409)

    licence = distribution("pylopdf-fonts-zh-cn").read_text("licenses/LICENSE")
    return _saved(font), _saved(font, "woff2"), f"{notice}\n\n{licence}"


def _saved(font: TTFont, flavor: str | None = None) -> bytes:
    buffer = io.BytesIO()
    font.flavor = flavor
    font.save(buffer)
    return buffer.getvalue()


def main() -> None:
    *fonts, licence = cut(characters())
    for path, data in zip((FONT, PAGE_FONT), fonts, strict=True):
        path.write_bytes(data)
        print(f"{path.name}: {len(data)} bytes")
    LICENCE.write_text(licence, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The package described as an RO-Crate, so that archives and their tools can read what it is."""

from __future__ import annotations

from collections.abc import Mapping

from rcr_probes.evidence import strict
from rcr_probes.publish.layout import CHECKER, SIGNATURE

VERSION = "1.1"  # of the RO-Crate specification
NAME = "Evidence of rcr-probes"
DESCRIPTION = (
    "An operation was approved, its action ran, and something failed around it: may it be called"
    " again? Captures of real faults and recoveries with their manifest, the claims that rest on"
    " them, tables, and a program that derives every verdict again."
)
_DATA = "https://creativecommons.org/licenses/by/4.0/"
_CODE = "https://spdx.org/licenses/MIT"
_AUTHORS = "#rcr-probes-authors"
_FORMATS: Mapping[str, str] = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".csv": "text/csv",
    ".toml": "application/toml",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".html": "text/html",
    ".py": "text/x-python",
}


def described(files: Mapping[str, bytes], others: list[str], name: str, date: str) -> bytes:
    """The bytes of ``ro-crate-metadata.json``.

    Args:
        files: path → bytes of what the package holds already.
        others: paths that it will hold besides, whose bytes depend on these metadata.
        name: of the package's evidence.
        date: the day that the package gives, as ``YYYY-MM-DD``.

    Raises:
        ImportError: the library ``rocrate`` is not installed.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version=VERSION)
    root = crate.root_dataset
    root["datePublished"] = date  # the library writes the time of day
    root["name"] = f"{NAME}: {name}"
    root["description"] = DESCRIPTION
    for licence, said in ((_DATA, "Creative Commons Attribution 4.0"), (_CODE, "MIT License")):
        crate.add(ContextEntity(crate, licence, {"@type": "CreativeWork", "name": said}))
    authors = {"@type": "Organization", "name": "The rcr-probes authors"}
    crate.add(ContextEntity(crate, _AUTHORS, authors))
    root["license"] = {"@id": _DATA}
    root["author"] = {"@id": _AUTHORS}
    for path in sorted([*files, *others]):
        size = {"contentSize": str(len(files[path]))} if path in files else {}
        suffix = path[path.rfind(".") :] if "." in path.rpartition("/")[2] else ""
        licence = _CODE if path == CHECKER else _DATA
        crate.add_file(
            dest_path=path,
            properties={
                "name": _named(path),
                "encodingFormat": _FORMATS.get(suffix, "text/plain"),
                "license": {"@id": licence},
                **size,
            },
        )
    return strict.encoded(crate.metadata.generate(), indented=True)


def _named(path: str) -> str:
    """What a file is, in a few words."""
    match path.split("/"):
        case [only]:
            return _ROOT.get(only, only)
        case ["evidence", folder, "captures.jsonl"]:
            return f"Captures of {folder}"
        case ["tables", file]:
            return f"Every capture of {file.removesuffix('.csv')} as a row"
    return path


_ROOT: Mapping[str, str] = {
    CHECKER: "Checks this package with Python alone: python3 check.py",
    "provenance.json": "What the package was made from and with",
    "manifest.json": "Every file with its SHA-256",
    "SHA256SUMS": "The same for sha256sum -c",
    SIGNATURE: "Signature of the manifest",
}

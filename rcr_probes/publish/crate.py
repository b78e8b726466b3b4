"""The package described as an RO-Crate, so that archives and their tools can read what it is.

All of it follows from the package's files and its day, so that a check makes it again. Standard
library alone: the package's own checker embeds this module as it is. Source: RO-Crate 1.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rcr_probes.evidence import strict
from rcr_probes.model import Json
from rcr_probes.publish.layout import (
    CHECKER,
    CRATE,
    MANIFEST,
    PROVENANCE,
    SIGNATURE,
    SUMS,
    UNLISTED,
)

NAME = "Evidence of rcr-probes"
DESCRIPTION = (
    "An operation was approved, its action ran, and something failed around it: may it be called"
    " again? Captures of faults and recoveries with their manifest, the claims that rest on"
    " them, tables, and a program that derives every verdict again."
)
_CONTEXT = "https://w3id.org/ro/crate/1.1/context"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_DATA = "https://creativecommons.org/licenses/by/4.0/"
_CODE = "https://spdx.org/licenses/MIT"
_AUTHORS = "#rcr-probes-authors"
# Beside the files: what they are called that the root and each file refer to.
_CONTEXTUAL: tuple[Json, ...] = (
    {"@id": _DATA, "@type": "CreativeWork", "name": "Creative Commons Attribution 4.0"},
    {"@id": _CODE, "@type": "CreativeWork", "name": "MIT License"},
    {"@id": _AUTHORS, "@type": "Organization", "name": "The rcr-probes authors"},
)
_FORMATS: Mapping[str, str] = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".csv": "text/csv",
    ".toml": "application/toml",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".py": "text/x-python",
}


def described(sizes: Mapping[str, int], evidence: Collection[str], date: str) -> bytes:
    """The bytes of ``ro-crate-metadata.json``.

    Args:
        sizes: path → bytes, of every file of the package but itself; how many those have that
            depend on these metadata makes no difference.
        evidence: the names of its folders of evidence, in order.
        date: the day that the package gives, as ``YYYY-MM-DD``.
    """
    paths = sorted(sizes)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "datePublished": date,
        "name": f"{NAME}: {', '.join(evidence)}",
        "description": DESCRIPTION,
        "license": {"@id": _DATA},
        "author": {"@id": _AUTHORS},
        "hasPart": [{"@id": path} for path in paths],
    }
    itself = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _SPECIFICATION},
        "about": {"@id": "./"},
    }
    files = [_file(path, sizes[path]) for path in paths]
    graph = [root, itself, *_CONTEXTUAL, *files]
    return strict.encoded({"@context": _CONTEXT, "@graph": graph}, indented=True)


def _file(path: str, size: int) -> Json:
    suffix = path[path.rfind(".") :] if "." in path.rpartition("/")[2] else ""
    return {
        "@id": path,
        "@type": "File",
        "name": _named(path),
        "encodingFormat": _FORMATS.get(suffix, "text/plain"),
        "license": {"@id": _CODE if path == CHECKER else _DATA},
        **({} if path in UNLISTED else {"contentSize": str(size)}),
    }


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
    PROVENANCE: "What the package was made from and with",
    MANIFEST: "Every file with its SHA-256",
    SUMS: "The same for sha256sum -c",
    SIGNATURE: "Signature of the manifest",
}

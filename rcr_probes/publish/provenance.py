"""What a package says of where it comes from: its day, its source, what made it, its evidence.

Publishing writes no user, host or path into it but what the environment of the evidence says, of
which it holds a copy. Standard library alone: the package's own checker embeds this module as it
is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import NoneType

from rcr_probes.evidence import strict
from rcr_probes.evidence.form import CAPTURES, PLAN
from rcr_probes.model import Json
from rcr_probes.publish.layout import EVIDENCE

SCHEMA = 1
_KEYS = ["schema", "date", "source", "made_with", "evidence"]
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.!+_-]{0,63}")  # PEP 440, and no place for a path


def written(
    day: str,
    commit: str | None,
    modified: bool | None,
    made_with: Mapping[str, str],
    evidence: Mapping[str, Json],
) -> bytes:
    """The bytes of ``provenance.json``.

    Args:
        day: of the evidence, as ``YYYY-MM-DD``.
        commit: of the repository that holds it; None where there is none.
        modified: whether the evidence differed from that commit; None where nobody looked.
        made_with: package → version, of what the package's bytes depend on.
        evidence: folder → what ``described`` says of it.
    """
    source = None if commit is None else {"commit": commit, "modified": modified}
    values = (SCHEMA, day, source, dict(made_with), dict(sorted(evidence.items())))
    return strict.encoded(dict(zip(_KEYS, values, strict=True)), indented=True)


def described(
    name: str, digests: Mapping[str, str], captures: int, environment: Json
) -> dict[str, Json]:
    """What provenance says of one folder of evidence."""
    return {
        "captures": captures,
        "captures_sha256": digests.get(f"{EVIDENCE}/{name}/{CAPTURES}"),
        "plan_sha256": digests.get(f"{EVIDENCE}/{name}/{PLAN}"),
        "environment": environment,
    }


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a package says of where it comes from, as far as a check asks.

    Attributes:
        date: its day, as ``YYYY-MM-DD``.
        evidence: folder of evidence → what is said of it.
    """

    date: str
    evidence: Mapping[str, Json]


def read(data: bytes) -> Provenance:
    """What a ``provenance.json`` says.

    Raises:
        Unreadable: it is no provenance, or not in the form in which it is written.
    """
    found = strict.parsed(data)
    if strict.encoded(found, indented=True) != data:
        raise strict.Unreadable("it is not in the form that publishing writes")
    if not isinstance(found, dict) or list(found) != _KEYS:
        raise strict.Unreadable(f"it does not hold {', '.join(_KEYS)}")
    if type(found["schema"]) is not int or found["schema"] != SCHEMA:  # true is not 1
        raise strict.Unreadable(f"its schema is not {SCHEMA}")
    if not _is_day(found["date"]):
        raise strict.Unreadable("its date is no day")
    if not _is_source(found["source"]):
        raise strict.Unreadable("its source is no commit")
    if not _are_versions(found["made_with"]):
        raise strict.Unreadable("what it was made with is no map of versions")
    if not isinstance(found["evidence"], dict):
        raise strict.Unreadable("its evidence is no map")
    return Provenance(found["date"], found["evidence"])


def _is_day(given: Json) -> bool:
    if not isinstance(given, str) or not _DAY.fullmatch(given):
        return False
    try:
        date.fromisoformat(given)
    except ValueError:  # such as the 30th of February
        return False
    return True


def _is_source(given: Json) -> bool:
    return given is None or (
        isinstance(given, dict)
        and list(given) == ["commit", "modified"]
        and isinstance(given["commit"], str)
        and COMMIT.fullmatch(given["commit"]) is not None
        and type(given["modified"]) in (bool, NoneType)
    )


def _are_versions(given: Json) -> bool:
    return isinstance(given, dict) and all(
        _PACKAGE.fullmatch(name) and isinstance(version, str) and _VERSION.fullmatch(version)
        for name, version in given.items()
    )

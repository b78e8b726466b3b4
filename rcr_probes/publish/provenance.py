"""What a package says of where it comes from: its day, its source, what made it, its evidence.

No user, host or path is in it. Standard library alone: the package's own checker embeds this module
as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType

from rcr_probes.evidence import strict
from rcr_probes.evidence.form import CAPTURES, PLAN
from rcr_probes.model import Json
from rcr_probes.publish.layout import EVIDENCE

SCHEMA = 1
_KEYS = ["schema", "date", "source", "made_with", "evidence"]
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)


def written(
    date: str,
    commit: str | None,
    modified: bool | None,
    made_with: Mapping[str, str],
    evidence: Mapping[str, Json],
) -> bytes:
    """The bytes of ``provenance.json``.

    Args:
        date: the day of the evidence, as ``YYYY-MM-DD``.
        commit: of the repository that holds it; None where there is none.
        modified: whether a tracked file differed from that commit; None where nobody looked.
        made_with: package → version, of what the package's bytes depend on.
        evidence: folder → what ``described`` says of it.
    """
    source = None if commit is None else {"commit": commit, "modified": modified}
    values = (SCHEMA, date, source, dict(made_with), dict(sorted(evidence.items())))
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


def evidence(data: bytes) -> Mapping[str, Json]:
    """What provenance says of each folder of evidence.

    Raises:
        Unreadable: it is no provenance, or not in the form in which it is written.
    """
    found = strict.parsed(data)
    if strict.encoded(found, indented=True) != data:
        raise strict.Unreadable("it is not in the form that publishing writes")
    if not isinstance(found, dict) or list(found) != _KEYS or found["schema"] != SCHEMA:
        raise strict.Unreadable(f"it does not hold {', '.join(_KEYS)}")
    if not isinstance(found["date"], str) or not _DAY.fullmatch(found["date"]):
        raise strict.Unreadable("its date is no day")
    source = found["source"]
    if source is not None and not (
        isinstance(source, dict)
        and list(source) == ["commit", "modified"]
        and COMMIT.fullmatch(str(source["commit"]))
        and type(source["modified"]) in (bool, NoneType)
    ):
        raise strict.Unreadable("its source is no commit")
    if not isinstance(found["evidence"], dict):
        raise strict.Unreadable("its evidence is no map")
    return found["evidence"]

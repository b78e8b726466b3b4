"""What DBOS has stored of a workflow: its SQLite system database, read without DBOS.

The tables are those of "DBOS System Tables" (docs.dbos.dev); dbos 3.4 keeps inputs in a table of
their own. Values are pickles in base64 ("DBOS Methods & Variables", Custom Serialization).
"""

from __future__ import annotations

import base64
import io
import pickle
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from rcr_probes.model import Json, Recorded
from rcr_probes.runtimes.requests import digest
from rcr_probes.runtimes.sqlite import copied
from rcr_probes.vocabulary import MISSING

# The workflow, and those forked from it; the last one is what holds now.
_LINE = """
WITH RECURSIVE line(id, depth) AS (
    SELECT workflow_uuid, 0 FROM workflow_status WHERE workflow_uuid = ?
    UNION ALL
    SELECT w.workflow_uuid, depth + 1 FROM workflow_status w JOIN line ON w.forked_from = line.id
)
SELECT id, w.status, coalesce(i.inputs, w.inputs)
FROM line JOIN workflow_status w ON w.workflow_uuid = id
LEFT JOIN workflow_input i ON i.workflow_uuid = id
ORDER BY depth, w.created_at
"""
_OUTPUT = """
SELECT output FROM operation_outputs
WHERE workflow_uuid = ? AND function_name = ? AND output IS NOT NULL ORDER BY function_id
"""


def recorded(path: Path, key: str, step: str, request: Mapping[str, Json]) -> Recorded:
    """What the database holds of the workflow ``key`` now, or of the one last forked from it.

    Args:
        path: the database; it need not be there.
        key: the workflow's id.
        step: the name of the step whose results are the evidence.
        request: the one in hand, for its digest.

    Raises:
        sqlite3.Error: it cannot be read.
        pickle.UnpicklingError: a stored value holds more than plain values.
    """
    current = digest(request)
    if not path.exists():
        return Recorded(MISSING, current_digest=current)
    with copied(path) as copy, closing(sqlite3.connect(copy / path.name)) as database:
        line = database.execute(_LINE, (key,)).fetchall()
        if not line:
            return Recorded(MISSING, current_digest=current)
        last, status, inputs = line[-1]
        outputs = database.execute(_OUTPUT, (last, step)).fetchall()
    _, stored = _value(inputs)["args"]
    return Recorded(
        status=status,
        execution=line[0][1] if len(line) > 1 else None,
        evidence=tuple(_value(output) for (output,) in outputs),
        approved_digest=digest(stored),
        current_digest=current,
    )


def _value(stored: str) -> Any:
    return _Plain(io.BytesIO(base64.b64decode(stored))).load()


class _Plain(pickle.Unpickler):
    """Reads plain values alone: a pickle that would import or call something is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")

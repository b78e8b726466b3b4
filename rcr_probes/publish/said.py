"""What a check of a package says to a person, line by line, in whichever language it is asked for.

Standard library alone: the package's own checker embeds this module as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from rcr_probes.evidence.check import Speak
from rcr_probes.publish.verify import Report


def lines(report: Report, speak: Speak, keyid: str | None = None) -> Iterator[str]:
    """What was found wrong, what was found right, and what nothing here can find.

    Args:
        report: of the check.
        speak: the text with this key, filled in.
        keyid: of the key that signed it and is trusted; None where nobody asked.
    """
    for finding in report.findings:
        yield finding.said(speak)
    if report.findings:
        yield speak("checked.unsound", findings=len(report.findings))
        return
    yield speak("checked.files", files=len(report.digests))
    for name, captures in report.evidence.items():
        yield speak("checked.evidence", name=name, captures=captures)
    yield speak("checked.tables", tables=report.tables)
    if report.outcomes:
        yield speak("checked.claims", claims=len(report.outcomes))
    if report.pages:
        yield speak("checked.pages", pages=report.pages)
    if keyid is not None:
        yield speak("checked.trusted", keyid=keyid)
    else:
        yield speak("checked.signed" if report.signed else "checked.unsigned")
    yield speak("checked.limits")

"""One tree of errors: each carries its fields, and says the cause and the remedy."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

_CODE = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_LONGEST_CODE = 64  # characters
_NO_ERROR = "none"
_PYTHON, _INSTALLED = os.path.dirname(os.__file__), re.compile(r"\b(site|dist)-packages\b")
# Of many names, so many are shown: of words, all that there are of anything but cells' numbers.
_LONG, _WORDS = 8, 40
_WORD = 40  # characters: what is longer is the id of a cell, or a path
_MADE = "made"  # the Makefile's stamp in an environment that it made


class RcrError(Exception):
    """What is wrong, and what to do about it.

    Attributes:
        cause: one sentence that says what is wrong and where.
        remedy: one sentence that says what to do or to type instead.
        exit_code: what the command line exits with: 2 misuse, 1 not to be trusted.
    """

    exit_code = 2

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause, remedy)
        self.cause = cause
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.cause}\n  {self.remedy}"


class UnknownName(RcrError):
    """A name that is not one of those known: a plan's, a point, a column, a cell.

    ``beside`` says what can be given and has no name among them.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str], beside: str = "") -> None:
        import difflib  # only where something is already wrong

        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(str(name), self.known, n=1, cutoff=0.5)
        parts = [one for one in self.known if str(name) in one]
        if not near and len(parts) == 1:
            near = parts
        said = f"Did you mean {near[0]!r}? " if near else ""
        if len(parts) > 1:  # then it is one of these that is meant
            said += f"It is a part of {len(parts)} of those known: {_listed(parts)}"
        else:
            said += f"Known: {_listed(self.known) or 'none'}"
        super().__init__(f"Unknown {kind}: {name!r}.", f"{said}\n  {beside}" if beside else said)


def below(names: Sequence[str]) -> str:
    """The first of these long names, one below the other, and how many more there are."""
    more = [f"… and {len(names) - _LONG} more"] if len(names) > _LONG else []
    return "\n    ".join(["", *names[:_LONG], *more])


def _listed(names: Sequence[str]) -> str:
    """Words in one line; ids of cells are long, and read best one below the other."""
    if any(len(name) > _WORD for name in names):
        return below(names)
    more = f" … and {len(names) - _WORDS} more" if len(names) > _WORDS else ""
    return ", ".join(names[:_WORDS]) + more


class NotInstalled(RcrError):
    """A package that is not here, and that an extra of this project installs."""

    def __init__(self, cause: str, extra: str) -> None:
        super().__init__(cause, f"In the project's folder, type: {installing(extra)}")


class PlanError(RcrError):
    """A plan that cannot be run as it is written."""


class RuntimeUnusable(RcrError):
    """A runtime that cannot be loaded, or does not keep the contract."""


class RuntimeMissing(RuntimeUnusable):
    """A runtime that needs a package or a program which is not on this machine."""


class EvidenceError(RcrError):
    """A folder that is not the evidence it should be; ``place`` names the file and the cell."""

    exit_code = 1

    def __init__(self, place: str, cause: str, remedy: str) -> None:
        self.place = place
        super().__init__(f"{place}: {cause}", remedy)


class NotEvidence(RcrError):
    """A path that holds no evidence at all: misuse, not distrust."""


class FaultError(RcrError):
    """A fault that could not be placed or lifted."""


class InjectedFault(Exception):
    """What the fault ``exception`` raises at its point.

    It stands for any failure of the runtime's own code there, so it is no RcrError: a runtime
    handles it as it handles its own errors.
    """

    code = "INJECTED_FAULT"

    def __init__(self, point: str) -> None:
        super().__init__(f"injected at {point}")
        self.point = point


def installing(extra: str) -> str:
    """What to type in a clone of this project to install what one of its extras needs.

    Where the Makefile made the environment that runs this, it is the Makefile that knows how.
    """
    if os.path.exists(os.path.join(sys.prefix, _MADE)):
        return f"make with-{extra}"
    import shlex  # only where something is missing

    python = shlex.quote(sys.executable)
    return f"{python} -m pip install -c constraints.txt -e '.[{extra}]'"


def printable(line: str) -> str:
    """The same line, but evidence from elsewhere cannot steer the terminal that shows it."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Have what the system refuses here name this path.

    Of a write the system names none by itself, and else one that nobody typed, which was to take
    this path's place.
    """
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None
        raise


def where(error: BaseException, called: int = 0) -> str:
    """Where an error came from, as ``FILE:LINE``; empty where that is nobody's code.

    The last line of it in somebody's own code: what Python, or what is installed, does below that
    line tells its author little. So many of the first ones, which only ``called``, are not meant.
    """
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}"
    own, installed, trace = "", "", error.__traceback__
    while trace is not None:
        file, called = trace.tb_frame.f_code.co_filename, called - 1
        place = f"{file}:{trace.tb_lineno}"
        if called < 0 and _INSTALLED.search(file):
            installed = place
        elif called < 0 and not file.startswith(("<frozen ", _PYTHON)):
            own = place
        trace = trace.tb_next
    return own or installed


def code_of(error: BaseException) -> str:
    """What a caller sees of an error: its ``code``, its errno's name, or its type's name.

    A code is a word. Free text is none, for it may hold a path; nor is ``none``, which says that
    there was no error. A type may be called anything.
    """
    given = getattr(error, "code", None)
    if isinstance(given, str) and _CODE.fullmatch(given) and given != _NO_ERROR:
        return given
    if isinstance(error, OSError) and error.errno is not None:
        return errno.errorcode.get(error.errno, "OSError")
    name = type(error).__name__
    called = name.isidentifier() and len(name) <= _LONGEST_CODE and name != _NO_ERROR
    return name if called else "Exception"

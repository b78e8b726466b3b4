"""A command of somebody's: its words, what is filled into them, and whether it can be found."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rcr_probes.errors import RcrError, UnknownName

# What only a shell understands; in quotes it means the same to a shell as to shlex.
_SHELL = re.compile(r"[|&;<>()$`*?\[\]#~\n]|^\s*\w+=")
# A name in braces; behind $ it is a variable of a shell's, behind % a format of the command's own.
_BRACED = re.compile(r"(?<![$%{])(\{+)([A-Za-z_]\w*)(\}+)", re.ASCII)
FOLDER = "folder"
PLACES = ("receiver", FOLDER)
_MISTYPED = "Check its name; one in this folder is written ./NAME, and must be executable."
_QUOTED = "Leave the quotes around the whole out: each word stands by itself; a shell is sh -c '…'."


@dataclass(frozen=True, slots=True)
class Command:
    """The words of a command. ``{receiver}`` and ``{folder}`` in them are filled in per strike.

    Any other name in braces is refused, unless these are doubled, which then gives single ones. All
    other braces, such as those of JSON, stay as they are.
    """

    words: tuple[str, ...]

    @classmethod
    def parsed(cls, text: str) -> Command:
        """A command that was given as one string.

        It is split as a shell splits words. Where it holds what only a shell understands (a pipe,
        a variable, a redirection, an assignment before the command), ``sh -c`` is given the whole.

        Raises:
            RcrError: it is empty, or a quote in it is not closed.
        """
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise RcrError(f"{text!r} is no command: {error}.", "Close its quotes.") from error
        if not words:
            raise RcrError("A command is empty.", "Give the command, or leave its option out.")
        return cls(("sh", "-c", text)) if _SHELL.search(text) else cls(words)

    def filled(self, receiver: str, folder: str) -> list[str]:
        """The words for one strike."""
        values = {"receiver": receiver, FOLDER: folder}
        return [fill(word, values) for word in self.words]

    def require(self) -> None:
        """Refuse a command that nobody could start, or could fill in.

        Raises:
            RcrError: there is no such program, or nothing is known of a name in braces.
        """
        for word in self.words:
            refuse_unknown(word, PLACES)
        program = self.words[0]
        if program.startswith(f"{{{FOLDER}}}") or shutil.which(program) is not None:
            return  # what setup puts into the folder is not there yet
        if os.sep in program and os.path.isfile(program):
            script = shlex.quote(program)
            raise RcrError(
                f"{program} is there, but is not executable.",
                f"Type: chmod +x {script}; or name before it what runs it, such as bash {script}",
            )
        raise RcrError(
            f"There is no program {program!r} that could be run from here.",
            _QUOTED if " " in program else _MISTYPED,
        )

    def __str__(self) -> str:
        return shlex.join(self.words)


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with the value of each name in braces; doubled braces become single ones."""

    def one(found: re.Match[str]) -> str:
        opened, name, closed = found.groups()
        if _doubled(found):
            return found[0][1:-1]
        return f"{opened[1:]}{values[name]}{closed[1:]}" if name in values else found[0]

    return _BRACED.sub(one, text)


def refuse_unknown(text: str, known: Sequence[str]) -> None:
    """Refuse a name in braces that nothing would be filled in for.

    Raises:
        RcrError: there is one.
    """
    for found in _BRACED.finditer(text):
        name = found[2]
        if name not in known and not _doubled(found):
            unknown = UnknownName("placeholder", f"{{{name}}}", [f"{{{one}}}" for one in known])
            remedy = f"{unknown.remedy}. Braces for the command itself are doubled: {{{{{name}}}}}"
            raise RcrError(unknown.cause, remedy)


def _doubled(found: re.Match[str]) -> bool:
    return min(len(found[1]), len(found[3])) > 1


def given(words: Sequence[str]) -> Command:
    """The command after ``--``.

    Raises:
        RcrError: there is none.
    """
    if not words:
        raise RcrError(
            "There is no worker to run.", "Put its command last: rcr probe -- python worker.py"
        )
    return Command(tuple(words))

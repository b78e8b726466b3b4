"""A command of somebody's: its words, what is filled into them, and whether it can be found."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from rcr_probes.errors import RcrError

# What only a shell understands; in quotes it means the same to a shell as to shlex.
_SHELL = re.compile(r"[|&;<>()$`*?\[\]#~\n]|^\s*\w+=")
RECEIVER = "{receiver}"
FOLDER = "{folder}"


@dataclass(frozen=True, slots=True)
class Command:
    """The words of a command. ``{receiver}`` and ``{folder}`` in them are filled in per strike."""

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
        return [w.replace(RECEIVER, receiver).replace(FOLDER, folder) for w in self.words]

    def require(self) -> None:
        """Refuse a command that nobody could start.

        Raises:
            RcrError: there is no such program.
        """
        if FOLDER not in self.words[0] and shutil.which(self.words[0]) is None:
            raise RcrError(
                f"There is no program {self.words[0]!r} that could be run from here.",
                "Check its name; one in this folder is written ./NAME, and must be executable.",
            )

    def __str__(self) -> str:
        return shlex.join(self.words)


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

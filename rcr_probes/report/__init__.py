"""Tables, figures, guides and words of evidence: what reads it, and never touches a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell, lang: str = "en") -> None:
    """What ``%load_ext rcr_probes.report`` calls: a notebook then shows the nouns in words.

    Args:
        shell: of the notebook, ``get_ipython()``.
        lang: ``en`` or ``zh``.

    Raises:
        UnknownName: there is no such language.
    """
    from rcr_probes.report.display import register

    register(shell, lang)

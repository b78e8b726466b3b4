"""Make the program that a package carries, out of the project's own modules as they are."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from rcr_probes.errors import RcrError
from rcr_probes.publish.layout import CHECKER
from rcr_probes.report import texts

MAIN = "rcr_probes.publish.standalone"
_OWN = "rcr_probes"
_TEXTS = ("checked.", "finding.", "claim.problem.")
_QUOTE = "'''"

_TEMPLATE = '''\
#!/usr/bin/env python3
"""Check the package that this program lies in:  python3 check.py [--lang zh]
检查本程序所在的证据包：python3 check.py --lang zh

It needs Python 3.11 or newer, its standard library alone, and no network. It reads the package and
changes nothing. What it is made of stands below as it stands in rcr-probes, module by module, so
that it can be compared with the source. Run a copy that you trust: whoever can change a package can
change this program with it.

{licence}"""

import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # nothing that lies in the package is ever imported

import types

MODULES = {{}}


def load():
    """Make the modules below importable, in their order, and nothing else of that name."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "{own}":
            del sys.modules[name]
    for name, source in MODULES.items():
        package, _, last = name.rpartition(".")
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(source, "check.py <" + name + ">", "exec"), module.__dict__)
        if package:
            setattr(sys.modules[package], last, module)


{modules}
TEXTS = r{quote}
{texts}
{quote}

if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit("check.py needs Python 3.11 or newer. 需要 Python 3.11 或更高版本。")
    import json
    from pathlib import Path

    load()
    main = sys.modules["{main}"].main
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent, json.loads(TEXTS)))
'''

LICENCE = """\
MIT License

Copyright (c) 2026 The rcr-probes authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


def program() -> bytes:
    """The bytes of ``check.py``.

    Raises:
        RcrError: a module cannot be embedded as it is, or its source is not here.
    """
    blocks = []
    for name, source in embedded().items():
        _refuse_quote(name, source)
        blocks.append(f"MODULES[{name!r}] = r{_QUOTE}{source}{_QUOTE}\n")
    said = json.dumps(spoken(), ensure_ascii=False, indent=1)
    _refuse_quote("the texts", said)
    return _TEMPLATE.format(
        licence=LICENCE,
        own=_OWN,
        modules="\n".join(blocks),
        texts=said,
        quote=_QUOTE,
        main=MAIN,
    ).encode()


def _refuse_quote(name: str, held: str) -> None:
    """Refuse what the program cannot hold as it is: a raw text ends at these quotes.

    Raises:
        RcrError: it has them, or ends in what would escape them.
    """
    if _QUOTE in held or held.endswith("\\"):
        raise RcrError(f"{name} cannot stand in {CHECKER} as it is.", f"Write it without {_QUOTE}.")


def is_ours(folder: Path) -> bool:
    """Whether the program in a package is the one that this version makes."""
    return (folder / CHECKER).read_bytes() == program()


def spoken() -> Mapping[str, Mapping[str, str]]:
    """The texts that the program says, in each language."""
    return {key: said for key, said in texts.table().items() if key.startswith(_TEXTS)}


@cache
def embedded() -> Mapping[str, str]:
    """The modules of the program and their sources, each after those that it imports.

    The packages that hold them are empty there: what they offer besides is not needed.
    """
    found: dict[str, str] = {}
    for name in _ordered(MAIN, []):
        package = name.rpartition(".")[0]
        for outer in _outer(package):
            found.setdefault(outer, "")
        found[name] = source(name)
    return found


def source(module: str) -> str:
    """A module's source, byte for byte."""
    return _path(module).read_bytes().decode()


def _ordered(module: str, begun: list[str]) -> Iterator[str]:
    """The module after all that it imports of the project, each once."""
    begun.append(module)
    for name in sorted(_imported(module)):
        if name not in begun:
            yield from _ordered(name, begun)
    yield module


def _imported(module: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name for name in names if name.partition(".")[0] == _OWN and _is_module(name)}


def _is_module(name: str) -> bool:
    """Whether this is a module, and neither a package nor a name in a module."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.submodule_search_locations is None


def _path(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise RcrError(
            f"The source of {module} is not here.", "Install rcr-probes from its source."
        )
    return Path(spec.origin)


def _outer(package: str) -> Iterator[str]:
    parts = package.split(".")
    for depth in range(1, len(parts) + 1):
        yield ".".join(parts[:depth])

"""The contract between the harness and a runtime: Runtime, Operation, and loading one by name."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rcr_probes.errors import RuntimeUnusable
from rcr_probes.model import Json, Recorded, Says


class Executor(Protocol):
    """What performs the action. It is the harness's, so the runtime owns neither ledger."""

    name: str

    def __call__(self, operation_key: str, request: Mapping[str, Json], /) -> Mapping[str, Json]:
        """Perform the action of ``request`` and return evidence of it."""
        ...


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, as its caller hands it over.

    Attributes:
        key: stable over every attempt of this operation.
        request: what is asked for; in recovery, recomputed (docs/design.md §3, digest). Its
            ``executor`` is the name of the executor.
        folder: private to the runtime and this cell, and there before ``start``; holds what the
            runtime stores, and what a caller would keep between the attempts (its ticket).
        executor: what to call.
    """

    key: str
    request: Mapping[str, Json]
    folder: Path
    executor: Executor


@runtime_checkable
class Runtime(Protocol):
    """A system under probe (docs/design.md §3)."""

    points: Mapping[str, frozenset[str]]
    """point → kinds of fault that it supports there."""
    recoveries: tuple[str, ...]
    """Its own documented ways to recover, by name."""
    says: Mapping[str, Says]
    """state → done, not_done or open, each from its documentation."""

    def start(self, operation: Operation) -> None:
        """The fault phase: do the operation. Raises what its caller would see."""
        ...

    def recover(self, operation: Operation, way: str) -> None:
        """In a new process: ``again`` or one of ``recoveries``. Raises what its caller sees."""
        ...

    def state(self, operation: Operation) -> Recorded:
        """What is stored. Writes nothing, reclassifies nothing."""
        ...


def load(name: str) -> Runtime:
    """The runtime that the factory ``package.module:factory`` makes.

    The current directory is importable.

    Raises:
        RuntimeUnusable: no such module or factory, or what it makes does not keep the contract.
    """
    module_name, _, factory_name = name.partition(":")
    if not module_name or not factory_name:
        raise RuntimeUnusable(
            f"{name!r} does not name a runtime.",
            "Write it as package.module:factory, such as rcr_probes.reference:approval.",
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    if module_name == "__main__":
        raise RuntimeUnusable(
            f"{name!r} lives in this session alone; a phase is a new process and cannot see it.",
            "In a notebook, put the class into a file with %%writefile my_runtime.py as the first "
            f"line of its cell, and name it my_runtime:{factory_name}.",
        )
    try:
        factory: Any = getattr(importlib.import_module(module_name), factory_name)
    except Exception as error:  # importing somebody's module may raise anything
        raise RuntimeUnusable(
            f"The runtime {name!r} cannot be loaded: {type(error).__name__}: {error}.",
            "Check its name; a module of your own must lie in the current directory or be "
            "installed (one written in a notebook cell needs %%writefile my_runtime.py).",
        ) from error
    try:
        runtime = factory()
    except Exception as error:
        raise RuntimeUnusable(
            f"The factory of {name!r} failed: {type(error).__name__}: {error}.",
            "It is called without arguments and returns a runtime.",
        ) from error
    if not isinstance(runtime, Runtime):
        missing = [
            m
            for m in ("points", "recoveries", "says", "start", "recover", "state")
            if not hasattr(runtime, m)
        ]
        raise RuntimeUnusable(
            f"What {name!r} makes is no runtime: it lacks {', '.join(missing)}.",
            "See docs/design.md, The contract of a runtime.",
        )
    return runtime

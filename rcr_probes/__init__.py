"""Did the failed operation take effect, and may it be called again? Measured from outside.

The nouns stand here. What does something stands in the module of its name: ``rcr_probes.run.run``
runs a plan, ``rcr_probes.evidence`` reads, checks and compares what it sealed, and
``rcr_probes.report`` shows it. A phase's process imports this module, so it stays small,
and a name is looked up when it is asked for: a command that measures nothing needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rcr_probes.model import Capture, Cell, Measurement, Observation, Plan, Recorded
    from rcr_probes.points import reach
    from rcr_probes.runtime import Executor, Operation, Runtime

__all__ = [
    "Capture",
    "Cell",
    "Executor",
    "Measurement",
    "Observation",
    "Operation",
    "Plan",
    "Recorded",
    "Runtime",
    "reach",
]
_ELSEWHERE = {
    "reach": "points",
    "Executor": "runtime",
    "Operation": "runtime",
    "Runtime": "runtime",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'model')}"), name)
    globals()[name] = found
    return found

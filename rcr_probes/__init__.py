"""Did the failed operation take effect, and may it be called again? Measured from outside.

The nouns stand here. What does something stands in the module of its name: ``rcr_probes.run.run``
runs a plan, ``rcr_probes.evidence`` reads, checks and compares what it sealed, and
``rcr_probes.report`` shows it. A phase's process imports this module, so it stays small.
"""

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

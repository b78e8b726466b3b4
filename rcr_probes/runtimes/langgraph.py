"""LangGraph with its SQLite checkpointer: the action lies in a node of a graph of three.

Driven: langgraph 1.2.24 with langgraph-checkpoint-sqlite 3.1.2, synchronous, no tracing. The graph
is ``prepare`` → ``act`` → ``confirm`` (langgraph_graph.py); the thread id is the operation's key.
Sources are titles of pages on docs.langchain.com, LangGraph for Python.

Points: ``before_action`` and ``after_action`` lie in ``act``. ``after_result`` is the beginning of
``confirm``, the next node. ``response`` comes after ``invoke`` has returned. What ``after_result``
means is a matter of durability ("Durable execution", Durability modes):

- ``sync``: the checkpoint with the result of ``act`` has been written.
- ``async``: it is written while ``confirm`` runs. The variant ``async`` is the usual course: a
  node takes longer than the write, so ``act`` and ``confirm`` wait until the checkpoint before
  them is there. ``async_store_busy`` is the rare one: another connection holds the write lock from
  the end of ``act`` until the point has passed, so nothing of the result is written at it.
- ``exit``: nothing at all is written before the graph ends: the result is in memory alone.

Approval ("Interrupts"), all ``sync``: ``interrupt_before_effect`` asks, and acts once it has the
answer. ``interrupt_after_effect`` acts, and then asks. ``interrupt_after_task`` does so too, with
the action in a ``@task``, which "Durable execution" advises. ``start`` invokes up to the interrupt,
and answers it as the approver would.

A refused result is a database that takes no more rows. LangGraph writes a node's result first to
``writes`` and then, with the whole state, to ``checkpoints`` ("Checkpointers", Super-steps): the
variants ``sync_writes_refused`` and ``sync_checkpoints_refused`` refuse one of them alone.

Ways: ``invoke``, with None on the same thread ("Durable execution", Resuming workflows);
``resume``, with ``Command(resume=…)`` once more ("Interrupts", Resuming interrupts); ``again``,
with the same input on the same thread, where the approver answers if asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from rcr_probes.model import Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, Runtime, require_way
from rcr_probes.runtimes import need
from rcr_probes.vocabulary import MISSING, Says

_DATABASE = "checkpoints.sqlite"
_KILLED = frozenset({"kill"})
_BOTH = ("writes", "checkpoints")
_ALONE = {"sync_writes_refused": ("writes",), "sync_checkpoints_refused": ("checkpoints",)}


class LangGraph:
    """One operation as one thread of a graph, one of whose nodes acts."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": _KILLED,
        "after_action": frozenset({"kill", "result_refused"}),
        "after_result": _KILLED,
        "response": _KILLED,
    }
    recoveries: tuple[str, ...] = ("invoke", "resume")
    variants: tuple[str, ...] = (
        "sync",
        "async",
        "async_store_busy",
        "exit",
        *_ALONE,
        "interrupt_before_effect",
        "interrupt_after_effect",
        "interrupt_after_task",
    )
    state_at_points = False
    versions = staticmethod(need("langgraph").versions)

    # What ``get_state`` says. "Checkpointers", StateSnapshot fields: an empty ``next`` "means the
    # graph is complete"; and Super-steps: the checkpoint in which ``confirm`` is next holds the
    # outputs of ``act``. No page promises that a node which is next, or which asks, has not acted:
    # it is run "from the beginning" again ("Interrupts", Resuming interrupts). Nor does a missing
    # thread say so: under ``exit`` nothing is stored before the end ("Durable execution").
    says: Mapping[str, Says] = {
        "complete": "done",
        "next_confirm": "done",
        "next_act": "open",
        "next_prepare": "open",
        "next_start": "open",
        "interrupted": "open",
        "error": "open",
        MISSING: "open",
    }

    def start(self, operation: Operation) -> None:
        """Invoke the graph, and answer as the approver would where it asks.

        Raises:
            Exception: what the caller of ``invoke`` sees.
        """
        from rcr_probes.runtimes.langgraph_graph import opened

        with opened(operation, _DATABASE) as graph:
            graph.submit()
            reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """``again``: as in ``start``. Else invoke with what the way is named after.

        Raises:
            UnknownName: no such way.
            Exception: what the caller of ``invoke`` sees.
        """
        from rcr_probes.runtimes.langgraph_graph import opened

        require_way(way, self.recoveries)
        with opened(operation, _DATABASE) as graph:
            match way:
                case "invoke":
                    graph.invoke(None)
                case "resume":
                    graph.approve()
                case _:
                    graph.submit()

    def state(self, operation: Operation) -> Recorded:
        """What ``get_state`` would say of the thread; LangGraph itself is not asked."""
        from rcr_probes.runtimes.langgraph_tables import recorded

        return recorded(operation.folder / _DATABASE, operation.key, operation.request)

    def refusal(self, operation: Operation) -> Refusal:
        """The database takes no more rows; in two variants, one of its two tables does not."""
        from rcr_probes.runtimes.sqlite import RefusedBySqlite

        tables = _ALONE.get(operation.variant, _BOTH)
        return RefusedBySqlite(operation.folder / _DATABASE, *tables, on=("INSERT",))


def runtime() -> Runtime:
    """The adapter.

    Raises:
        RuntimeMissing: langgraph or its SQLite checkpointer is not installed.
    """
    need("langgraph").require()
    return LangGraph()

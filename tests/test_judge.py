"""The judge: each verdict, in its order; the measured truth; and whether the fault fired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from rcr_probes import judge
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Approved, Cell, Forced, Judgement, Measurement, Truth, Verdict
from rcr_probes.vocabulary import AUDIT_FAULTS, FAULTS, VERDICTS
from tests.measurements import APPROVED, P3, SAYS, effects, measured, strike

M = "marker-0"
A, B = f"{M}:1", f"{M}:2"  # the two parts of an operation that makes two effects
TWO = Approved("operation-0", M, effects=2)
KILLED: Mapping[str, Any] = {
    "cell": {"point": "after_action", "fault": "kill"},
    "standing": None,
    "errors": ("SIGKILL", "none"),
}
# What was measured → the verdict. Each row differs from the one that it would fall through to.
VERDICT_ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "the fault did not fire": ({"lanes": []}, "unknown"),
    "an observation is damaged": ({"damage": ("effects.jsonl:2: torn",)}, "unknown"),
    "a deadline passed": ({"ended": ("exit", "deadline")}, "unknown"),
    "a phase crashed": ({"ended": ("exit", "crash")}, "unknown"),
    "somebody killed the fault phase": ({"ended": ("SIGKILL", "exit")}, "unknown"),
    "somebody killed the recovery": ({"ended": ("exit", "SIGTERM")}, "unknown"),
    "the planned kill": ({**KILLED, "ended": ("SIGKILL", "exit")}, "protected"),
    "the planned kill, and another one": ({**KILLED, "ended": ("SIGKILL",) * 2}, "unknown"),
    "another kill than the planned one": (
        {**KILLED, "ended": ("SIGSEGV", "exit"), "standing": True},
        "unknown",
    ),
    "the truth was not measured": ({"forced_error": "deadline"}, "unknown"),
    "a wrong effect in place of ours": ({"last": ("other",)}, "wrong_effect"),
    "a wrong effect beside ours": ({"last": (M, "other"), "calls": (1, 2)}, "wrong_effect"),
    "one effect too many": ({"last": (M, M), "calls": (1, 2)}, "duplicate_effect"),
    "one too many, and called done": (
        {"last": (M, M), "calls": (1, 2), "states": ("failed", "succeeded")},
        "duplicate_effect",
    ),
    "done, and nothing there": (
        {"first": (), "last": (), "forced": (M,), "states": ("failed", "succeeded")},
        "lost_effect",
    ),
    "not called though needed and harmless": (
        {"first": (), "last": (), "forced": (M,), "calls": (0, 0)},
        "blocked",
    ),
    "not called though needed, and it came all the same": (
        {"first": (), "last": (M,), "forced": (M,), "calls": (1, 1)},
        "consistent",
    ),
    "needed, but the call would have been wrong": (
        {"first": (), "last": (), "forced": ("other",), "calls": (0, 0)},
        "protected",
    ),
    "needed, but the call would have done nothing": (
        {"first": (), "last": (), "forced": (), "calls": (0, 0)},
        "no_effect",
    ),
    "called, and still nothing": (
        {"first": (), "last": (), "forced": (M,), "calls": (0, 1)},
        "no_effect",
    ),
    "not_done over an effect": ({"states": ("failed", "approved")}, "state_effect_split"),
    "done over a part": (
        {"states": ("failed", "succeeded"), "approved": TWO, "calls": (1, 2)},
        "state_effect_split",
    ),
    "a part, and the state is open": ({"approved": TWO, "calls": (1, 2)}, "unknown"),
    "a part, and a call would have doubled it": (
        {"approved": TWO, "first": (A,), "last": (A,), "forced": (A, A)},
        "unknown",
    ),
    "not called, though the other part was needed": (
        {"approved": TWO, "first": (A,), "last": (A,), "forced": (A, B)},
        "blocked",
    ),
    "one of two parts twice": (
        {"approved": TWO, "first": (A,), "last": (A, A), "calls": (1, 2)},
        "duplicate_effect",
    ),
    "the other part is called": (
        {"approved": TWO, "first": (A,), "last": (A, B), "forced": (A, A), "calls": (1, 2)},
        "consistent",
    ),
    "both parts are called, and one was there": (
        {"approved": TWO, "first": (A,), "last": (A, B), "forced": (A, A), "calls": (1, 3)},
        "deduplicated",
    ),
    "both parts are there": (
        {"approved": TWO, "first": (A, B), "last": (A, B), "forced": (A, B, B), "calls": (2, 2)},
        "protected",
    ),
    "stopped, and said why": ({"states": ("failed", "verification_required")}, "held"),
    "stopped, though needed and harmless": (
        {
            "first": (),
            "last": (),
            "forced": (M,),
            "calls": (0, 0),
            "states": ("failed", "verification_required"),
        },
        "held",
    ),
    "stopped before, and not by recovery": (
        {"states": ("verification_required", "verification_required")},
        "protected",
    ),
    "called over an effect, and one remains": (
        {"calls": (1, 2), "states": ("failed", "succeeded")},
        "deduplicated",
    ),
    "not called, and it would have doubled": ({}, "protected"),
    "not called, and it would have been wrong": ({"forced": (M, "other")}, "protected"),
    "not called, and it would have changed nothing": ({"forced": (M,)}, "consistent"),
    "called for the first time": (
        {"first": (), "forced": (M,), "calls": (0, 1), "states": ("approved", "succeeded")},
        "consistent",
    ),
}
TRUTH_ROWS = {
    ((), (M,)): Truth(True, "none"),
    ((), ()): Truth(True, "useless"),
    ((), ("other",)): Truth(True, "wrong"),
    ((), (M, M)): Truth(True, "duplicate"),
    ((M,), (M,)): Truth(False, "none"),
    ((M,), (M, M)): Truth(False, "duplicate"),
    ((M,), (M, "other")): Truth(False, "wrong"),
    (("other",), ("other",)): Truth(True, "useless"),
    (("other",), ("other", M)): Truth(True, "none"),
    ((M, M), (M, M)): Truth(False, "none"),
}
STATE = ("fault", "state", {"status": "succeeded"})
FAILED = ("fault", "state", {"status": "failed"})
LOSES: Mapping[str, Any] = {
    "cell": {"point": "completion_audit", "fault": "lost_append"},
    "errors": ("none", "none"),
}
LOST = strike(Cell(point="completion_audit", fault="lost_append"))


def at(point: str, phase: str = "fault") -> tuple[str, Any, Mapping[str, Any]]:
    return (phase, "point", {"point": point})


def returned(error: str = "none", phase: str = "fault") -> tuple[str, Any, Mapping[str, Any]]:
    return (phase, "return", {"error": error})


HEARD: Any = ("fault", "audit", {"event": "operation.started"})
ANSWERED: Any = ("recover", "audit", {"event": "operation.started"})
# What happened, in order → whether an audit line was lost; where the cell's fault loses it.
AUDIT_ROWS: Mapping[str, tuple[list[Any], bool]] = {
    "the next point is reached": ([at("completion_audit"), LOST, at("response")], True),
    "the phase returns": ([at("completion_audit"), LOST, returned()], True),
    "the phase returns, and then recovery is heard": (
        [at("completion_audit"), LOST, returned(), ANSWERED], True
    ),
    "the first of two steps": (
        [at("start_audit"), LOST, at("before_action"), at("completion_audit"), HEARD], True
    ),
    "the second of two steps": (
        [at("start_audit"), HEARD, at("before_action"), at("completion_audit"), LOST, returned()],
        True,
    ),
    "the line is there": ([at("completion_audit"), HEARD, LOST, returned()], False),
    "the line is seen once the phase has returned": (
        [at("completion_audit"), LOST, returned(), HEARD], False
    ),
    "the phase returns an error": ([at("completion_audit"), LOST, returned("EISDIR")], False),
    "the point itself fails": (
        [
            at("completion_audit"),
            LOST,
            ("fault", "fault", {"point": "completion_audit", "error": "INJECTED_FAULT"}),
            returned(),
        ],
        False,
    ),
    "the phase ends here": ([at("completion_audit"), LOST], False),
    "it is no audit point": ([LOST, at("after_action"), at("response"), returned()], False),
    "a system call is no next step": ([at("completion_audit"), LOST, at("write@state#1")], False),
    "recovery goes on": ([LOST, at("completion_audit", "recover"), returned("none", "recover")],
                         False),
}  # fmt: skip
REASON_ROWS: Mapping[str, dict[str, Any]] = {
    "called_again_in_fault_phase": {"calls": (2, 2)},
    "split_after_fault": {"states": ("approved", "failed")},
    "done_reclassified": {"lanes": [strike(measured().cell), STATE, FAILED]},
    "evidence_erased": {"evidence": (({"observed_count": 1},), ())},
    "recovery_refused": {"errors": ("EISDIR", "APPROVAL_BUSY")},
    "no_recovery": {"ended": ("exit", None), "errors": ("EISDIR", None)},
}
NEAR_REASONS: Mapping[str, dict[str, Any]] = {
    "called_again_in_fault_phase": {"calls": (1, 2)},
    "split_after_fault": {"states": ("failed", "failed")},
    "done_reclassified": {"lanes": [strike(measured().cell), FAILED, STATE]},
    "evidence_erased": {"evidence": (({"observed_count": 1},),) * 2},
    "recovery_refused": {"errors": ("EISDIR", "APPROVAL_BUSY"), "calls": (1, 2)},
    "no_recovery": {"ended": ("exit", "exit")},
}


# What makes a cell unknown → exactly these reasons.
UNKNOWN_ROWS: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    ({"approved": TWO, "calls": (1, 2)}, ("partial_effect",)),
    ({"lanes": []}, ("fault_not_fired",)),
    ({"damage": ("x",)}, ("observation_damaged",)),
    ({"ended": ("deadline", "exit")}, ("deadline_passed",)),
    ({"ended": ("exit", "crash")}, ("phase_crashed",)),
    ({"ended": ("exit", "SIGKILL")}, ("phase_killed",)),
    *(
        ({"forced_error": error}, ("truth_not_measured",))
        # The harness failed; the call never came there; or nobody knows whether it did.
        for error in ("crash", "damaged", "deadline", "ECONNREFUSED", "EIO", "SIGKILL", "HTTP_503")
    ),
    (
        {"cell": KILLED["cell"], "ended": ("SIGSEGV", "exit"), "standing": True},
        ("phase_killed",),
    ),
    ({"lanes": [], "ended": ("crash", "exit")}, ("fault_not_fired", "phase_crashed")),
)


def verdict_of(module: ModuleType, made: Measurement) -> Any:
    assert made.forced is not None
    truth = module.truth(made.approved, made.observations[0], made.forced)
    return module.verdict(made, module.fired(made), truth)


def kill(standing: bool | None = None, **changes: Any) -> Measurement:
    return measured(cell={"point": "after_action", "fault": "kill"}, standing=standing, **changes)


def refused(standing: bool | None) -> Measurement:
    cell = {"point": "after_action", "fault": "result_refused"}
    return measured(cell=cell, standing=standing, errors=("FAILED", "none"))


def proven(error: str | None, fault: str = "exception", **changes: Any) -> Measurement:
    """A fault that is proven by an event of its own."""
    cell = {"point": "after_action", "fault": fault}
    lanes: list[Any] = [strike(Cell(point="after_action", fault=fault))]
    if error:
        lanes.append(("fault", "fault", {"point": "after_action", "error": error}))
    return measured(cell=cell, lanes=lanes, standing=None, **changes)


def hung(error: str | None = "HUNG", ended: str = "hang") -> Measurement:
    return proven(error, "hang", ended=(ended, "exit"), errors=("HUNG", "none"))


def torn(ended: str = "SIGKILL", standing: bool = True) -> Measurement:
    cell = {"point": "completion_audit", "fault": "torn_append"}
    return measured(cell=cell, ended=(ended, "exit"), standing=standing, errors=(ended, "none"))


def unpowered(state: int | None, ended: str = "SIGKILL") -> Measurement:
    """A power loss that is to leave state 2, and the state that was put there."""
    cell = Cell(point="after_action", fault="power_loss#2")
    lanes: list[Any] = [strike(cell)]
    if state is not None:
        lanes.append(("fault", "fault", {"point": cell.point, "state": state}))
    planned = {"point": cell.point, "fault": cell.fault}
    return measured(cell=planned, lanes=lanes, standing=None, ended=(ended, "exit"))


def lost(point: str, error: str) -> Measurement:
    cell = {"point": point, "fault": "response_lost"}
    return measured(cell=cell, standing=None, errors=(error, "none"))


def full(point: str, standing: bool = True, error: str = "none") -> Measurement:
    cell = {"point": point, "fault": "disk_full"}
    return measured(cell=cell, standing=standing, errors=(error, "none"))


def raised(fault: str) -> Measurement:
    """A file fault that stands, beside an error that the strike told of."""
    cell = Cell(point="start_audit", fault=fault)
    error = FAULTS[fault]
    lanes: list[Any] = [strike(cell), ("fault", "fault", {"point": cell.point, "error": error})]
    planned = {"point": cell.point, "fault": fault}
    return measured(cell=planned, lanes=lanes, errors=(error, "none"))


def published() -> Measurement:
    made = measured()
    return Measurement(
        made.cell, "elsewhere", APPROVED, SAYS, made.events, made.observations, forced=None
    )


FIRED_ROWS = {
    "a file fault, seen and felt": (measured(), True),
    "a file fault that nobody saw": (measured(standing=False), False),
    "a file fault that nobody felt": (measured(errors=("none", "none")), False),
    **{
        f"{fault}, whose error the strike raised itself": (raised(fault), False)
        for fault in AUDIT_FAULTS
    },
    "a file fault without proof": (measured(lanes=[]), False),
    "a proof from the recovery phase": (
        measured(lanes=[("recover", "fault", strike(measured().cell)[2])]),
        False,
    ),
    "a proof at another point": (
        measured(lanes=[("fault", "fault", {"point": "start_audit", "fault": "kill"})]),
        False,
    ),
    "a kill": (kill(ended=("SIGKILL", "exit")), True),
    "a kill by the deadline": (kill(ended=("deadline", "exit")), False),
    "a kill that did not kill": (kill(ended=("exit", "exit")), False),
    "a kill below the phase": (kill(ended=("exit", "exit"), standing=True), True),
    "a kill below the phase, and it lives": (kill(ended=("exit", "exit"), standing=False), False),
    "a host that was seen to end": (proven("SIGKILL", "kill_host"), True),
    "a host that nobody saw end": (proven(None, "kill_host"), False),
    "a refusal that stands": (refused(standing=True), True),
    "a refusal that nobody saw": (refused(standing=False), False),
    "an exception": (proven("INJECTED_FAULT"), True),
    "an exception of another kind": (proven("EIO"), False),
    "an exception that never left": (proven(None), False),
    "a call that was misreported": (proven("EIO", "error_after_call"), True),
    "a call whose answer nobody changed": (proven(None, "error_after_call"), False),
    "a hang": (hung(), True),
    "a hang that nobody told": (hung(None), False),
    "a hang up to the deadline": (hung(ended="deadline"), False),
    "a torn append": (torn(), True),
    "a torn append of one who lived": (torn("exit"), False),
    "a torn append that left nothing torn": (torn(standing=False), False),
    "a power loss": (unpowered(2), True),
    "a power loss that left another state": (unpowered(1), False),
    "a power loss whose state nobody put there": (unpowered(None), False),
    "a power loss of one who lived": (unpowered(2, "exit"), False),
    "a lost answer": (lost("response", "RESPONSE_LOST"), True),
    "a lost answer that came": (lost("response", "none"), False),
    "an answer that the receiver lost": (lost("after_action", "EIO"), True),
    "a refused call": (full("write@state#1"), True),
    "a refused call that nobody saw": (full("write@state#1", standing=False), False),
    "a full disk, seen and felt": (full("start_audit", error="ENOSPC"), True),
    "a full disk that nobody felt": (full("start_audit"), False),
    "a lost append": (
        measured(cell={"point": "start_audit", "fault": "lost_append"}, errors=("none", "none")),
        True,
    ),
    "a lost append that failed": (
        measured(cell={"point": "start_audit", "fault": "lost_append"}, errors=("EIO", "none")),
        False,
    ),
    "no fault planned": (measured(cell={"point": "none", "fault": "none"}), None),
    "published by others": (published(), None),
}


def check(module: ModuleType) -> None:
    """Hold a judge against every row; also used on mutants of it."""
    for name, (changes, expected) in VERDICT_ROWS.items():
        given = verdict_of(module, measured(**changes))
        assert given.verdict == expected, name
        assert ("partial_effect" in given.reasons) is name.startswith("a part,"), name
    for (before, after), truth in TRUTH_ROWS.items():
        observed = measured(first=before).observations[0]
        assert module.truth(APPROVED, observed, Forced(effects(*after), "none")) == truth
    seen = measured().observations[0]
    for unread, forced in (
        (seen, None),
        (seen, Forced(effects(M), "SIGKILL")),
        (replace(seen, effects=None), Forced((), "none")),
    ):
        assert module.truth(APPROVED, unread, forced) is None
    for code, changes in REASON_ROWS.items():
        assert code in verdict_of(module, measured(**changes)).reasons, code
    for code, changes in NEAR_REASONS.items():
        assert code not in verdict_of(module, measured(**changes)).reasons, code
    for runtime, again in (("worker", False), ("rcr_probes.reference:approval", True)):
        twice = measured(approved=TWO, calls=(2, 2), cell={**P3, "runtime": runtime})
        found = "called_again_in_fault_phase" in verdict_of(module, twice).reasons
        assert found is again, runtime
    for name, (made, fired) in FIRED_ROWS.items():
        assert module.fired(made) is fired, name
    for fault in ("kill", "kill_host"):  # a phase may be among the hosts that are killed
        planned = proven("SIGKILL", fault)
        first, last = planned.observations
        died = replace(planned, observations=(replace(first, ended="SIGKILL"), last))
        assert "phase_killed" not in verdict_of(module, died).reasons, fault
    for planned in (hung(), torn()):
        assert "phase_killed" not in verdict_of(module, planned).reasons
    assert "phase_killed" in verdict_of(module, measured(ended=("hang", "exit"))).reasons
    for name, (lanes, is_lost) in AUDIT_ROWS.items():
        codes = verdict_of(module, measured(**{**LOSES, "lanes": lanes})).reasons
        assert ("audit_lost" in codes) is is_lost, name
    unheard = [strike(measured().cell), at("start_audit"), at("response")]
    told_of: list[tuple[list[Any], bool]] = [([], False), ([ANSWERED], False), ([HEARD], True)]
    for heard, told in told_of:
        codes = verdict_of(module, measured(lanes=[*heard, *unheard])).reasons
        assert ("audit_lost" in codes) is told, heard
    call = Cell(point="write@audit#3", fault="io_error")
    struck = measured(
        cell={"point": call.point, "fault": call.fault},
        lanes=[HEARD, strike(call), at("start_audit"), at("response")],
    )
    assert "audit_lost" not in verdict_of(module, struck).reasons
    for changes, reasons in UNKNOWN_ROWS:
        assert verdict_of(module, measured(**changes)) == Verdict("unknown", reasons)
    open_without = measured(first=(), last=(M,), calls=(0, 1))
    assert "split_after_fault" not in verdict_of(module, open_without).reasons
    done_without = measured(first=(), last=(M,), calls=(0, 1), states=("succeeded", "succeeded"))
    assert "split_after_fault" in verdict_of(module, done_without).reasons


def test_every_row_gets_its_verdict_truth_reasons_and_proof() -> None:
    """The whole table of docs/design.md §7, and each row's nearest neighbour."""
    check(judge)


def test_the_rows_reach_every_verdict() -> None:
    """A verdict that no row reaches would be one that no test holds."""
    assert {expected for _, expected in VERDICT_ROWS.values()} == set(VERDICTS)


def test_no_unknown_is_without_a_reason() -> None:
    """Each row that gives unknown says why."""
    for changes, expected in VERDICT_ROWS.values():
        assert expected != "unknown" or verdict_of(judge, measured(**changes)).reasons


def test_a_measured_row_without_its_forced_call_is_unknown_and_not_unjudged() -> None:
    """Only what others published is not judged."""
    judged = derive(replace(measured(), forced=None))
    assert judged.verdict is not None
    assert judged.verdict.reasons == ("truth_not_measured",)
    assert derive(published()) == Judgement()


def test_a_state_that_the_runtime_does_not_explain_says_nothing() -> None:
    """An undeclared state is read as open, never as done or not_done."""
    assert verdict_of(judge, measured(states=("failed", "limbo"))).verdict == "protected"


def test_an_effect_under_a_key_of_its_own_is_the_approved_one_all_the_same() -> None:
    """A runtime that makes up a key for each attempt has not changed the meaning: it doubles."""
    twice = measured(last=(M, M), calls=(1, 2))
    first, last = twice.observations
    assert first.effects is not None
    assert last.effects is not None
    assert twice.forced is not None
    minted = replace(first.effects[0], operation_key="attempt-1")
    again = replace(last.effects[1], operation_key="attempt-2")
    keyed = replace(
        twice,
        observations=(
            replace(first, effects=(minted,)),
            replace(last, effects=(minted, again)),
        ),
        forced=replace(twice.forced, effects=(minted, *twice.forced.effects[1:])),
    )
    judged = derive(keyed)
    assert judged.verdict is not None
    assert judged.verdict.verdict == "duplicate_effect"
    assert judged.truth == Truth(call_needed=False, call_harm="duplicate")
    assert judged.decision is not None
    assert judged.decision.eligibility == "stop"

"""A runtime in any language that does not keep to the protocol: what it is blamed for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.spoken import DESCRIBED, SPOKEN, ran, toml

HOSTILE = {
    "garbage": ("print('not JSON')", "BAD_ANSWER"),
    "a number": ("print(7)", "BAD_ANSWER"),
    "two lines": ('print(\'{"error": null}\\n{"error": null}\')', "BAD_ANSWER"),
    "nothing": ("pass", "BAD_ANSWER"),
    "no code": ('print(\'{"error": "/home/me"}\')', "BAD_ANSWER"),
    "another answer": ('print(\'{"status": "done"}\')', "BAD_ANSWER"),
    "too deep": ("print('[' * 100_000)", "BAD_ANSWER"),
    "too much": ("print('x' * (1 << 22))", "BAD_ANSWER"),
    "exit 7": ("raise SystemExit(7)", "EXIT_7"),
    "said none, exit 7": ("print('{\"error\": null}'); sys.exit(7)", "EXIT_7"),
    "said why, exit 7": ('print(\'{"error": "FULL"}\'); sys.exit(7)', "FULL"),
    "a signal": ("os.kill(os.getpid(), 15)", "SIGTERM"),
}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_command_that_does_not_keep_to_the_protocol_is_blamed_and_the_run_goes_on(
    described: Path, start: str
) -> None:
    """What it did instead is the error that its caller sees; why, is in the cell's output."""
    names = list(HOSTILE) if start == "fork" else ["garbage"]
    lines = "".join(
        f"    if order['variant'] == 'v{n}':\n        {HOSTILE[name][0]}\n        sys.exit()\n"
        for n, name in enumerate(names)
    )
    hostile = SPOKEN.replace("heard(order", f"if order['verb'] == 'start':\n{lines}heard(order")
    (described / "spoken.py").write_text(hostile)
    variants = [f"v{n}" for n in range(len(names))]
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    found, _ = ran(*({"variant": variant} for variant in variants), keep=True, start=start)
    seen = {name: row["caller_error"] for name, row in zip(names, found, strict=True)}
    assert seen == {name: HOSTILE[name][1] for name in names}
    said = [p.read_text() for p in sorted(Path("evidence.cells").glob("*/harness/output.txt"))]
    assert "the command wrote 'not JSON', no JSON object" in said[0]


def test_a_command_that_never_ends_or_leaves_a_daemon_makes_its_cell_unknown(
    described: Path,
) -> None:
    """Both are ended, nothing is left behind, and the next cell is measured."""
    daemon = "if os.fork() == 0: os.setsid(); time.sleep(600)"
    lines = (
        "    import time\n"
        "    if order['variant'] == 'endless': time.sleep(600)\n"
        f"    if order['variant'] == 'daemon':\n        {daemon}\n"
    )
    hostile = SPOKEN.replace("heard(order", f"if order['verb'] == 'start':\n{lines}heard(order")
    (described / "spoken.py").write_text(hostile)
    variants = ["endless", "daemon", "baseline"]
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    found, _ = ran(*({"variant": variant} for variant in variants), deadline=8)
    assert [row["verdict"] for row in found] == ["unknown", "unknown", "protected"]
    assert found[0]["reasons"] == "deadline_passed"
    assert "observation_damaged" in str(found[1]["reasons"])


NO_STATES = (
    "{}",
    '{"status": 1}',
    '{"status": "done", "evidence": {}}',
    '{"status": "done", "evidence": [{"count": 1.5}]}',
    '{"status": "done", "more": 1}',
)


def test_a_state_that_is_none_makes_the_cell_unknown(described: Path) -> None:
    """It is damage; what the runtime did is counted all the same."""
    variants = [f"v{n}" for n in range(len(NO_STATES))]
    answers = dict(zip(variants, NO_STATES, strict=True))
    said = (
        "if order['verb'] == 'state':\n"
        f"    print({answers!r}[order['variant']])\n    raise SystemExit\nheard(order"
    )
    (described / "spoken.py").write_text(SPOKEN.replace("heard(order", said))
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    found, evidence = ran(*({"policy": "never", "variant": variant} for variant in variants))
    assert [(row["verdict"], row["effects_after_fault"]) for row in found] == [
        ("unknown", 1)
    ] * len(NO_STATES)
    damage = {c.measurement.observations[0].damage for c in evidence.captures()}
    assert damage == {("record: cannot be read (BAD_ANSWER)",)}


def test_what_the_question_for_the_state_leaves_behind_makes_the_cell_unknown(
    described: Path,
) -> None:
    """A process that it started, or one that had to be ended, could still change the state."""
    daemon = "if os.fork() == 0: os.setsid(); os.closerange(0, 3); time.sleep(600)"
    lines = (
        "    import time\n"
        "    if order['variant'] == 'endless': time.sleep(600)\n"
        f"    if order['variant'] == 'daemon':\n        {daemon}\n"
    )
    asked = SPOKEN.replace("heard(order", f"if order['verb'] == 'state':\n{lines}heard(order")
    (described / "spoken.py").write_text(asked)
    variants = ["endless", "daemon", "baseline"]
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    cells = ({"policy": "never", "variant": variant} for variant in variants)
    found, evidence = ran(*cells, deadline=8)
    assert [row["verdict"] for row in found] == ["unknown", "unknown", "protected"]
    damage = [c.measurement.observations[0].damage for c in evidence.captures()]
    assert damage == [
        (
            "record: cannot be read (deadline)",
            "record: the process that asked for it ended by deadline",
        ),
        ("record: the process that asked for it left others running, which were ended",),
        (),
    ]

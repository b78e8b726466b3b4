"""What stands in place of an audit file fails its append by the kernel's own error."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes import faults
from rcr_probes.errors import FaultError
from rcr_probes.faults import Target, audit
from rcr_probes.reference import approval
from rcr_probes.vocabulary import AUDIT_FAULTS, FAULTS, TRACED_FAULTS
from tests.faults.beside import below, needs_ptrace
from tests.test_faults import at, mute

LINE = b'{"event":"operation.prepared","approval_id":"0"}\n'
NEXT = b'{"event":"operation.started","approval_id":"0"}\n'
TORN = b'{"event":"operation.started"'


def append(path: Path, line: bytes = NEXT) -> str:
    """Append as a runtime does, and say how that ended: by system calls alone."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            assert os.write(fd, line) == len(line)
        finally:
            os.close(fd)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "none"


@pytest.mark.parametrize("before", [b"", LINE, LINE[:-9], None])
@pytest.mark.parametrize("fault", AUDIT_FAULTS)
def test_the_append_meets_the_kernels_error_and_what_stood_there_comes_back(
    tmp_path: Path, fault: str, before: bytes | None
) -> None:
    """From the strike to the lift; then an append is kept again, and nothing else lies there."""
    path = tmp_path / "audit.jsonl"
    if before is not None:
        path.write_bytes(before)
    kind, target = faults.KINDS[fault], at("start_audit", path)

    def struck() -> list[object]:
        assert append(path) == "none"
        path.unlink() if before is None else path.write_bytes(before)
        unseen = kind.standing(target)
        kind.strike(target, mute)
        return [unseen, append(path), append(path), kind.standing(target)]

    assert below(struck).told == [False, FAULTS[fault], FAULTS[fault], True]
    assert kind.standing(target) is True  # also once the process that it struck is gone
    kind.lift(target)
    assert kind.standing(target) is False
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(tmp_path.iterdir())) == (before is not None)
    assert append(path) == "none"
    assert path.read_bytes() == (before or b"") + NEXT


@pytest.mark.parametrize("fault", AUDIT_FAULTS)
def test_what_was_never_struck_is_lifted_without_a_change(tmp_path: Path, fault: str) -> None:
    """A fault that did not come to strike leaves the audit as it is, or absent."""
    path = tmp_path / "audit.jsonl"
    faults.KINDS[fault].lift(at("start_audit", path))
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(LINE)
    faults.KINDS[fault].lift(at("start_audit", path))
    faults.KINDS[fault].lift(at("start_audit"))
    assert path.read_bytes() == LINE


@pytest.mark.parametrize("fault", [*AUDIT_FAULTS, "torn_append"])
def test_a_point_without_a_path_says_what_the_runtime_must_hand_over(fault: str) -> None:
    """The remedy names the argument that is left out."""
    with pytest.raises(FaultError, match="reach\\(point, path="):
        faults.KINDS[fault].strike(at("start_audit"), mute)
    assert faults.KINDS[fault].standing(at("start_audit")) is False


@pytest.mark.parametrize("fault", [f for f in AUDIT_FAULTS if f != "audit_is_directory"])
def test_what_a_runtime_puts_in_its_place_is_the_runtimes(tmp_path: Path, fault: str) -> None:
    """A file that is renamed over it takes the fault away; it is neither overwritten nor seen."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(LINE)

    def struck() -> None:
        faults.KINDS[fault].strike(at("start_audit", path), mute)
        (tmp_path / "new").write_bytes(NEXT)
        (tmp_path / "new").rename(path)

    assert below(struck).ended == "exit"
    assert faults.KINDS[fault].standing(at("start_audit", path)) is False
    faults.KINDS[fault].lift(at("start_audit", path))
    assert path.read_bytes() == NEXT
    assert (tmp_path / "audit.jsonl.saved").read_bytes() == LINE


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_file_that_is_too_large_is_an_error_and_never_a_signal(
    tmp_path: Path, action: signal.Handlers
) -> None:
    """Whatever the runtime had done about SIGXFSZ; and its other, smaller files can be written."""
    path = tmp_path / "audit.jsonl"

    def struck() -> list[object]:
        signal.signal(signal.SIGXFSZ, action)
        faults.KINDS["file_too_large"].strike(at("start_audit", path), mute)
        small = append(tmp_path / "record", b"x" * (audit.LARGEST - 1))
        return [append(path), small]

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    done = below(struck)
    assert (done.ended, done.told) == ("exit", ["EFBIG", "none"])
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before
    assert path.stat().st_blocks * 512 < audit.LARGEST  # it costs no disk


@needs_ptrace
@pytest.mark.parametrize("before", [None, LINE, LINE[:-9]])
def test_a_torn_append_keeps_the_first_field_and_the_process_dies(
    tmp_path: Path, before: bytes | None
) -> None:
    """The kernel was given no more; other files are written whole, and no tracer is left."""
    path, other = tmp_path / "audit.jsonl", tmp_path / "other"
    if before is not None:
        path.write_bytes(before)
    kind, target = faults.KINDS["torn_append"], at("start_audit", path)
    assert kind.standing(target) is False or before == LINE[:-9]

    def struck() -> str:
        kind.strike(target, mute)
        append(other)
        append(path, (b"\n" if before == LINE[:-9] else b"") + NEXT)
        return "alive"

    done = below(struck)
    assert (done.ended, done.told, done.left) == ("SIGKILL", None, 0)
    assert other.read_bytes() == NEXT
    whole = LINE[:-9] + b"\n" if before == LINE[:-9] else before or b""
    assert path.read_bytes() == whole + TORN
    assert kind.standing(target) is True
    kind.lift(target)
    assert path.read_bytes() == whole + TORN  # what a crash leaves is recovery's to find


@needs_ptrace
def test_an_append_that_fails_by_itself_is_not_torn(tmp_path: Path) -> None:
    """Then nothing is on disk that would prove it, and the process lives."""
    path = tmp_path / "audit.jsonl"
    kind, target = faults.KINDS["torn_append"], at("start_audit", path)

    def struck() -> list[str]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        kind.strike(target, mute)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        return [append(path), append(path)]

    done = below(struck)
    assert (done.ended, done.told, done.left) == ("exit", ["EFBIG", "EFBIG"], 0)
    assert kind.standing(target) is False


@needs_ptrace
def test_what_comes_to_no_append_leaves_no_tracer(tmp_path: Path) -> None:
    """It ends with the process that it follows."""
    path = tmp_path / "audit.jsonl"
    done = below(lambda: faults.KINDS["torn_append"].strike(at("start_audit", path), mute))
    assert (done.ended, done.told, done.left) == ("exit", None, 0)


_word = st.text(max_size=8)
_plain = st.none() | st.booleans() | st.integers() | _word
_values = _plain | st.lists(_plain, max_size=3) | st.dictionaries(_word, _plain, max_size=3)


@given(
    st.dictionaries(_word, _values, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(["", "\n"]),
)
def test_a_line_is_cut_after_its_first_field(
    fields: dict[str, Any], compact: bool, before: str
) -> None:
    """Whatever a JSON object holds: what is kept says that field, and lacks but its own end."""
    separators = (",", ":") if compact else (" , ", " : ")
    text = json.dumps(fields, ensure_ascii=compact, separators=separators)
    line = f"{before}{text}\n".encode(errors="surrogatepass")
    kept = line[: audit.first_field(line)]
    assert 0 < len(kept) < len(line) - 1
    first = next(iter(fields))
    assert json.loads(kept.decode(errors="surrogatepass") + "}") == {first: fields[first]}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"started,0,1\n", b"started"),
        (b"started 0\n", b"started"),
        (b"\nstarted|0\n", b"\nstarted"),
        ("begonnen;ü\n".encode(), b"begonnen"),
        (b"\n", b""),
        (b"", b""),
        (b'{"event"\n', b""),
        (b'{"event":\n', b""),
        (b"{}\n", b""),
    ],
)
def test_a_line_of_words_is_cut_after_the_first_and_one_without_a_field_is_not(
    line: bytes, field: bytes
) -> None:
    """Nothing is cut at a byte that means nothing."""
    assert line[: audit.first_field(line)] == field


def test_a_full_disk_at_a_call_stands_nowhere_and_is_not_lifted(tmp_path: Path) -> None:
    """There strace saw it; the audit has nothing to do with it."""
    target = Target("write@audit.jsonl#1", None, approval(), at("start_audit").operation)
    assert faults.KINDS["disk_full"].standing(target) is True
    faults.KINDS["disk_full"].lift(target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ["io_error", "error_after_call"])
def test_a_fault_of_calls_is_not_struck_at_a_point(fault: str) -> None:
    """It says how such a point is written."""
    assert fault in (*TRACED_FAULTS, "io_error")
    with pytest.raises(FaultError, match="CALL@FILE#N"):
        faults.KINDS[fault].strike(at("after_action"), mute)

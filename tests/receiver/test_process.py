"""The receiver as a process: where it listens, how it ends, and that nothing is left running."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import rcr_probes
from rcr_probes.receiver import Receiver, ReceiverError, Settings, read_back
from rcr_probes.receiver.control import Control
from tests.receiver.calls import PATIENCE, place, send, worker
from tests.receiver.conftest import Start

LISTENING = "0A"  # the state in /proc/net/tcp
LOOPBACK = "0100007F"  # 127.0.0.1, as it is written there

ROOT = str(Path(rcr_probes.__file__).parents[1])

HOLDER = """
import sys
from rcr_probes.receiver import Receiver
receiver = Receiver(sys.argv[1])
print(receiver.pid, flush=True)
sys.stdin.read()
if sys.argv[2:] == ["raise"]:
    raise SystemExit("without stopping it")
"""


def sockets_of(pid: int) -> set[str]:
    """The inodes of a process's sockets."""
    names = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    return {name[8:-1] for name in names if name.startswith("socket:[")}


def listeners(pid: int) -> list[tuple[str, int]]:
    """Every address on which a process listens for TCP or UDP, as the kernel has it."""
    own = sockets_of(pid)
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if rest[5] in own and (state == LISTENING or table.startswith("udp")):
                address, port = local.split(":")
                found.append((address, int(port, 16)))
    return found


def ends(pidfd: int) -> bool:
    """Whether that process ends in time."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(PATIENCE * 1000))


def test_it_listens_on_loopback_only(receiver: Receiver) -> None:
    """One TCP port on 127.0.0.1, nothing on another interface, no UDP."""
    assert listeners(receiver.pid) == [(LOOPBACK, place(receiver)[1])]


def test_the_harness_has_a_door_of_its_own(receiver: Receiver) -> None:
    """A Unix socket in the folder, for its owner alone; so is the database."""
    for name in ("control.sock", "receiver.sqlite", "receiver.lock"):
        mode = (Path(receiver.folder) / name).stat().st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0, name


def test_it_stops_and_leaves_nothing(receiver: Receiver) -> None:
    """No process, no port, no socket; the record stays, and stopping twice does no harm."""
    send(receiver)
    receiver.stop()
    receiver.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(receiver.pid, 0)
    with pytest.raises(ConnectionRefusedError):
        send(receiver)
    assert not (Path(receiver.folder) / "control.sock").exists()
    assert len(read_back(receiver.folder).effects) == 1
    with pytest.raises(ReceiverError, match="read_back"):
        receiver.effects()


def test_it_stops_when_it_is_asked(receiver: Receiver) -> None:
    """The answer comes first."""
    pidfd = os.pidfd_open(receiver.pid)
    receiver.shutdown()
    assert ends(pidfd)
    os.close(pidfd)


@pytest.mark.parametrize("how", ["kill", "exit", "raise"])
def test_it_does_not_outlive_its_parent(tmp_path: Path, how: str) -> None:
    """Killed, ended or broken: when the harness is gone, the receiver goes."""
    folder = str(tmp_path / "receiver")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert holder.stdout
    assert holder.stdin
    pidfd = os.pidfd_open(int(holder.stdout.readline()))
    with holder:
        if how == "kill":
            holder.kill()
        else:
            holder.stdin.close()
        assert ends(pidfd)
    os.close(pidfd)


def test_a_killed_receiver_leaves_its_commits(start: Start) -> None:
    """Durable: what was done before SIGKILL is there for the next one, whose door is its own."""
    receiver = start()
    first = send(receiver, key="k")
    receiver.arm("hold_before", 2)
    process = worker(receiver)
    assert receiver.wait_held(PATIENCE)
    os.kill(receiver.pid, signal.SIGKILL)
    receiver.stop()
    process.kill()
    process.communicate()
    after = start()
    assert send(after, key="k") == first
    assert [each.outcome for each in after.requests()] == ["effect", "abandoned", "replayed"]


def test_two_receivers_do_not_share_a_folder(receiver: Receiver) -> None:
    """The second is refused, in words, and the first lives on."""
    with pytest.raises(ReceiverError, match="ended before it served") as refused:
        Receiver(receiver.folder)
    assert "Another receiver runs" in refused.value.remedy
    assert send(receiver)[0] == 200


def test_a_receiver_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Its own words are the remedy, and no process is left."""
    (tmp_path / "receiver.sqlite").write_text("not a database" * 100)
    with pytest.raises(ReceiverError, match="ended before it served") as refused:
        Receiver(str(tmp_path))
    assert "not a database" in refused.value.remedy
    with pytest.raises(ReceiverError) as refused:
        Receiver(str(tmp_path / "other"), Settings(answer=str(tmp_path / "nothing.json")))
    assert "nothing.json" in refused.value.remedy


def test_a_folder_that_was_cleared_away_as_it_started_is_not_made_again(tmp_path: Path) -> None:
    """Its run was killed, and the next one has cleared its scratch: nobody would clear it twice."""
    gone = tmp_path / "scratch" / "0" / "receiver"
    words = [sys.executable, "-P", "-m", "rcr_probes.receiver", str(gone)]
    done = subprocess.run([*words, "--parent", str(os.getpid())], capture_output=True, text=True)
    assert done.returncode == 2
    assert "cannot run" in done.stderr
    assert not (tmp_path / "scratch").exists()


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    """The address of a Unix socket has 107 bytes at most; a folder may have more."""
    folder = tmp_path / ("d" * 120) / ("e" * 120)
    with Receiver(str(folder)) as receiver:
        assert send(receiver)[0] == 200
        assert len(receiver.effects()) == 1


def test_a_folder_keeps_its_settings(start: Start) -> None:
    """They are part of the world that is copied or continued."""
    settings = Settings("ignored", 7, ("POST", "X!"), None, 202, 1.5, 2.25, "X-Key")
    start(settings).stop()
    after = start()
    found = after._call("about")
    assert found["settings"] == {
        "keys": "ignored", "retention": 7, "effects_of": ["POST", "X!"], "answer": None,
        "status": 202, "bound": 1.5, "read_within": 2.25,
        "key_header": "X-Key",
    }  # fmt: skip
    assert (found["pid"], found["address"]) == (after.pid, after.address)


def test_it_is_no_part_of_what_ctrl_c_reaches(receiver: Receiver) -> None:
    """Its process group is its own: the harness ends it in good order."""
    assert os.getpgid(receiver.pid) == receiver.pid != os.getpgid(0)


def test_the_harness_pays_nothing_heavy_for_it() -> None:
    """The process that forks may hold a receiver: no threads, no subprocess, no HTTP library."""
    program = "import rcr_probes.receiver, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    banned = {"threading", "subprocess", "logging", "concurrent.futures", "http", "http.client"}
    assert not banned & set(done.stdout.split())


def test_every_word_of_the_command_line_is_documented() -> None:
    """``--help`` has an example and every setting."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rcr_probes.receiver", "--help"],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for name in Settings.__dataclass_fields__:
        assert f"--{name.replace('_', '-')} " in done.stdout
    assert "example:" in done.stdout


def test_curl_can_ask(receiver: Receiver) -> None:
    """Any language reaches the control socket: plain HTTP, one JSON object in and one out."""
    with socket.socket(socket.AF_UNIX) as sock:
        place = os.open(receiver.folder, os.O_PATH)
        sock.connect(f"/proc/self/fd/{place}/control.sock")
        os.close(place)
        sock.sendall(b'POST /.rcr/ask HTTP/1.1\r\nContent-Length: 11\r\n\r\n{"key":"k"}')
        answer = b""
        while piece := sock.recv(4096):
            answer += piece
    assert answer.endswith(b'{"result": {"took_effect": "no", "in_flight": false}}\n')


def test_the_harness_has_a_method_for_every_verb() -> None:
    """Or the verb is dead; ``about`` is for people."""
    verbs = Control(None).verbs  # type: ignore[arg-type]
    assert {verb for verb in verbs if not hasattr(Receiver, verb)} == {"about"}

"""``rcr probe`` on real workers, from the command line to checked evidence."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from rcr_probes import strace
from rcr_probes.evidence.check import check
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.receiver.records import CONTROL
from rcr_probes.report.sentences import STRUCK
from tests.evidence import made
from tests.probe.conftest import EXAMPLES, Probe, Start, rcr

Worker = Callable[[str], list[str]]
needs_strace = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)

AFTER = ("Killed after the effect", "Answer lost after the effect", "500 after the effect",
         "No answer after the effect")  # fmt: skip
SAYS = {
    "no_key": (
        "your recovery made the effect again, without a key (effects: 2, not 1). "
        "Send a key that stays the same for the job, or ask before calling."
    ),
    "attempt_key": (
        "your recovery made the effect again, with a new key (effects: 2, not 1). "
        "Send the same key again, or ask before calling."
    ),
    "stable_key": (
        "your recovery sent the same key again, and the receiver answered with the first result. "
        "Effects: 1, as it should be."
    ),
}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(state: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not state():
        assert time.monotonic() < end, "the state did not come about"
        time.sleep(0.01)


# The three versions of the example.


@pytest.fixture(scope="module")
def examples(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[Mapping[str, tuple[int, str, Path]]]:
    """Exit code, output and evidence of each version, as its README runs it: side by side."""
    place = tmp_path_factory.mktemp("examples")
    begun = {
        version: subprocess.Popen(
            rcr(
                "probe",
                *("--into", place / version),
                *("--setup", f"{sys.executable} runner.py {{folder}}/jobs.db"),
                *("--", sys.executable, f"{version}.py", "{folder}/jobs.db", "{receiver}"),
            ),
            cwd=EXAMPLES,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for version in SAYS
    }
    try:
        said = {version: one.communicate(timeout=300)[0] for version, one in begun.items()}
        yield {v: (one.returncode, said[v], place / v) for v, one in begun.items()}
    finally:
        for one in begun.values():
            one.kill()
            one.communicate()


@pytest.mark.parametrize("version", SAYS)
def test_each_version_of_the_example_is_found_out(
    version: str, examples: Mapping[str, tuple[int, str, Path]]
) -> None:
    """Without a key, and with one for each attempt, the customer pays twice; else once."""
    code, out, _ = examples[version]
    lines = out.splitlines()
    assert code == (0 if version == "stable_key" else 1)
    assert [f"{struck}: {SAYS[version]}" for struck in AFTER] == [
        line for line in lines if line.startswith(tuple(f"{struck}:" for struck in AFTER))
    ]
    assert "Killed before the effect: your recovery sent what was missing." in out
    assert "No fault: your recovery sent nothing more. Effects: 1, as it should be." in lines


def test_the_table_counts_requests_keys_and_effects(
    examples: Mapping[str, tuple[int, str, Path]],
) -> None:
    """Each fault is one line: what was sent, and what exists after it and after recovery."""
    rows = [
        re.split(r"\s{2,}", line.strip())
        for line in examples["attempt_key"][1].splitlines()
        if line.startswith("  ") and "→" in line
    ]
    assert rows[1:5] == [
        ["No fault", "1", "1", "1 → 1", "exit_0", "exit_0", "consistent"],
        ["Killed before the effect", "2", "2", "0 → 1", "SIGKILL", "exit_0", "consistent"],
        ["503 before the effect", "2", "2", "0 → 1", "exit_1", "exit_0", "consistent"],
        ["Killed after the effect", "2", "2", "1 → 2", "SIGKILL", "exit_0", "duplicate_effect"],
    ]
    assert len(rows) == 1 + len(STRUCK)


def test_the_evidence_is_sound_and_holds_nothing_private(
    examples: Mapping[str, tuple[int, str, Path]],
) -> None:
    """Keys, paths, payloads and commands are the worker's: no fact, and in no file."""
    for _, _, folder in examples.values():
        assert check(folder).findings == ()
        text = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
        for private in ("/charges", "job-1", "jobs.db", str(EXAMPLES), "Ada", "stable_key"):
            assert private not in text


def test_one_forged_byte_and_one_forged_verdict_are_found(
    examples: Mapping[str, tuple[int, str, Path]], tmp_path: Path
) -> None:
    """It is evidence like any other: also where the manifest is made to fit."""
    folder = shutil.copytree(examples["no_key"][2], tmp_path / "forged")
    lines = made.lines(folder)
    (folder / CAPTURES).write_bytes(b"".join(lines).replace(b"exit_1", b"exit_0", 1))
    assert not check(folder).sound
    forged = [line.replace(b'"duplicate_effect"', b'"deduplicated"') for line in lines]
    made.reseal(folder, forged)
    assert any("verdict does not follow" in str(found) for found in check(folder).findings)


def test_show_explain_and_compare_work_on_it(
    examples: Mapping[str, tuple[int, str, Path]], environment: dict[str, str]
) -> None:
    """The commands for evidence know no difference, but for what a key changes."""

    def run(*words: object) -> tuple[int, str]:
        done = subprocess.run(rcr(*words), env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout

    one, other = examples["no_key"][2], examples["attempt_key"][2]
    code, shown = run("show", one, "--json")
    assert (code, len(json.loads(shown))) == (0, 1 + len(STRUCK))
    assert run("show", one)[1].splitlines() == examples["no_key"][1].splitlines()
    assert "恢复流程" in run("show", one, "--lang", "zh")[1]
    code, told = run("explain", one, "after_action/kill")
    assert code == 0
    assert "kill strikes at after_action" in told
    assert run("compare", one, one)[0] == 0
    assert run("compare", one, other)[0] == 1


# Workers that do not do what one hopes.


def test_a_worker_that_marks_its_job_before_the_call_loses_it(probe: Probe, tmp_path: Path) -> None:
    """A shell script with curl: killed before the effect, its recovery believes that it is done."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    script = tmp_path / "worker.sh"
    script.write_text(
        '#!/bin/sh\n[ -e "$RCR_FOLDER/done" ] && exit 0\ntouch "$RCR_FOLDER/done"\n'
        'exec curl -sSf -m 1 -d \'{"cents": 5}\' "$RCR_RECEIVER/charges"\n'
    )
    done = probe("--recover", "sh worker.sh; exit 0", "--", "sh", "worker.sh")
    assert done.returncode == 1
    assert (
        "Killed before the effect: your recovery sent nothing and ended as if all were done"
        in done.stdout
    )
    assert "Killed after the effect: your recovery sent nothing more." in done.stdout
    assert check(tmp_path / "found").sound


def test_a_worker_that_hangs_is_ended_and_its_cell_is_unknown(
    probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """It never ends after a lost answer; everything else of it is judged."""
    words = worker(
        """
        if done():
            sys.exit()
        status = call("{}", "same")
        if status == 0:
            time.sleep(600)
        if status < 500:
            finish()
        """
    )
    done = probe("--timeout", 8, *words)
    assert done.returncode == 3
    assert "Answer lost after the effect: your worker was still running" in done.stdout
    assert "Killed after the effect: your recovery sent the same key again" in done.stdout
    assert check(tmp_path / "found").sound


def test_a_worker_that_does_not_look_at_the_answer_loses_its_effect(
    probe: Probe, worker: Worker
) -> None:
    """Whatever it is told, it marks its job as done: only a call that did nothing shows that."""
    done = probe(*worker('if not done():\n    call("{}", "same")\n    finish()'))
    assert done.returncode == 1
    assert "503 before the effect: your recovery sent nothing and ended as if" in done.stdout
    assert "Killed after the effect: your recovery sent the same key again" in done.stdout


def test_a_worker_that_never_ends_is_refused(probe: Probe, worker: Worker) -> None:
    """Nothing can be learnt from it, and the remedy is said."""
    done = probe("--timeout", 1, *worker('call("{}")\ntime.sleep(600)'))
    assert (done.returncode, done.stdout) == (2, "")
    assert "did not end within 1 s" in done.stderr
    assert "--timeout" in done.stderr


@pytest.mark.parametrize("place", ["folder", "output", "files"])
def test_a_worker_that_fills_its_folder_is_ended(
    tmp_path: Path, environment: dict[str, str], worker: Worker, place: str
) -> None:
    """With one file, with many, or with what it prints; so is a child in a session of its own."""
    writes = {
        "folder": "open(folder + '/big', 'ab').write(bytes(1 << 16))",
        "output": "print('more ' * 10_000, flush=True)",
        "files": "open(f'{folder}/{time.monotonic_ns()}', 'w').close()",
    }
    words = worker(
        f"""
        if os.fork() == 0:
            os.setsid()
            with open({str(tmp_path / "pid")!r}, "w") as file:
                file.write(f"{{os.getpid()}}")
            time.sleep(600)
        call("{{}}")
        while True:
            {writes[place]}
            time.sleep(0.001)
        """
    )
    small = (
        "import sys; from rcr_probes import room; from rcr_probes.cli import main\n"
        "room.LARGEST, room.MOST = 4 << 20, 200\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    probing = ["probe", "--timeout", "300", "--into", "found", *words]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", small, *probing],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert time.monotonic() - begun < 150
    assert (done.returncode, done.stdout) == (2, "")
    assert "its folder grew beyond 4 MiB or 200 files" in done.stderr
    assert "RCR_FOLDER" in done.stderr
    assert not (tmp_path / "found").exists()
    assert not alive(int((tmp_path / "pid").read_text()))


def test_what_a_worker_leaves_behind_is_ended_and_makes_it_unknown(
    probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """A child in a session of its own outlives its parent, but not the probe."""
    words = worker(
        f"""
        if os.fork() == 0:
            os.setsid()
            with open({str(tmp_path / "pids")!r}, "a") as file:
                file.write(f"{{os.getpid()}}\\n")
            time.sleep(600)
        call("{{}}")
        """
    )
    done = probe("--request", "1", *words)
    assert done.returncode == 3
    assert "left a process running, which was ended" in done.stdout
    left = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert left
    assert not any(alive(pid) for pid in left)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("print('no key is set')", ["sent nothing to the receiver", "RCR_RECEIVER", "no key is"]),
        (
            "import ssl; host, port = os.environ['RCR_RECEIVER'][7:].split(':')\n"
            "try: ssl.create_default_context().wrap_socket("
            "__import__('socket').create_connection((host, int(port))), server_hostname=host)\n"
            "except OSError: pass",
            ["refused what the worker sent, with HTTP 400", "no TLS", "RCR_RECEIVER"],
        ),
        ("call('{}'); sys.exit(4)", ["ended with exit_4, though nothing struck", "--answer"]),
        ("call('{}'); os.kill(os.getpid(), 40)", ["ended with SIGNAL_40, though nothing struck"]),
        (
            "seen = os.path.exists('seen'); open('seen', 'w').close(); seen or call('{}')",
            ["remembers the first one outside", "RCR_FOLDER", "--setup"],
        ),
        (
            "open('seen', 'a').write('x'); [call('{}') for _ in open('seen').read()]",
            ["Two runs without a strike differ", "--setup"],
        ),
    ],
    ids=[
        "no request",
        "no HTTP",
        "no success",
        "nameless signal",
        "no fresh state",
        "no two runs alike",
    ],
)
def test_a_worker_that_cannot_be_probed_is_told_why(
    program: str, says: list[str], probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """Cause and remedy, exit code 2, and no evidence that says less than it seems to."""
    done = probe("--recover", "true", *worker(program))
    assert (done.returncode, done.stdout) == (2, "")
    for words in says:
        assert words in done.stderr
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--", "touch", "{foldr}"],
        ["--setup", "touch ran {jobs}", "--", "touch", "ran"],
        ["--recover", "touch ran {jobs}", "--", "touch", "ran"],
        ["--syscalls", "{receiver}", "--", "touch", "ran"],
    ],
    ids=lambda words: words[0],
)
def test_a_placeholder_that_nothing_knows_is_refused_before_anything_runs(
    words: list[str], probe: Probe, tmp_path: Path
) -> None:
    """In whichever command, and in the place that strace watches, which knows the folder alone."""
    done = probe(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rcr: Unknown placeholder: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_everything(
    number: signal.Signals, start: Start, worker: Worker, tmp_path: Path
) -> None:
    """The worker, what it started, and the receiver: nothing is left, however often it is asked."""
    pids = tmp_path / "pids"
    begun = start(
        *worker(
            f"""
            child = os.fork()
            if child == 0:
                os.setsid()
                time.sleep(600)
            with open({str(pids)!r}, "w") as file:
                file.write(f"{{os.getpid()}} {{child}} .")
            time.sleep(600)
            """
        )
    )
    until(lambda: pids.exists() and pids.read_text().endswith("."))
    left = [int(pid) for pid in pids.read_text().split()[:-1]] + children(begun.pid)
    assert len(set(left)) == 3
    asked = time.monotonic()
    while begun.poll() is None and time.monotonic() - asked < 60:
        begun.send_signal(number)
        time.sleep(0.002)
    assert begun.returncode == 130
    assert time.monotonic() - asked < 5  # 2 on a machine with nothing else to do
    until(lambda: not any(alive(pid) for pid in left), 1)
    assert begun.stderr
    assert "interrupted" in begun.stderr.read()


def children(pid: int) -> list[int]:
    """The worker, and the receiver."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(found) == 2
    return [int(child) for child in found]


def test_a_recovery_that_fails_is_shown_with_what_it_printed(probe: Probe, worker: Worker) -> None:
    """The first that failed; with a mistyped command that is the control's."""
    done = probe("--recover", "echo tried; echo no such job >&2; exit 3", *worker('call("{}")'))
    assert (
        "No fault: your recovery ended with exit_3. It printed:\n    tried\n    no such job\n"
        in done.stderr
    )
    assert "no such job" not in done.stdout
    silent = probe("--lang", "zh", "--recover", "sh -c 'exit 3'", *worker('call("{}")'))
    assert "没有故障：恢复流程以 exit_3 结束，没有任何输出。" in silent.stderr
    fine = probe("--recover", "echo all is well", *worker('call("{}")'))
    assert "all is well" not in fine.stderr


@pytest.mark.parametrize("into", ["/proc/found", "worker.py/found"])
def test_where_nothing_can_be_written_nothing_is_run(
    into: str, probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """It is refused first, and not when all has been measured."""
    done = probe(*worker("open('ran', 'w').close(); call('{}')"), into=into)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Name a" in done.stderr
    assert not (tmp_path / "ran").exists()


# Options.


def test_later_requests_can_be_struck_and_are_told_apart(
    probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """Of two charges the second is repeated, and the first is not."""
    words = worker(
        """
        for job in ("a", "b"):
            if os.path.exists(f"{folder}/{job}"):
                continue
            call(job, job if job == "a" else None) == 200 or sys.exit(1)
            open(f"{folder}/{job}", "w").close()
        """
    )
    done = probe("--request", "all", *words)
    assert done.returncode == 1
    assert re.search(r"Killed after the effect \(request 2\) +3 +1 +2 → 3", done.stdout)
    assert re.search(r"Killed after the effect \(request 1\) +3 +1 +1 → 2", done.stdout)
    told = [line.partition(", ")[0] for line in done.stdout.splitlines()]
    assert "Killed after the effect (request 1): your recovery sent the same key again" in told
    assert "Killed after the effect (request 2): your recovery made the effect again" in told
    assert "(effects: 3, not 2)" in done.stdout
    assert check(tmp_path / "found").sound
    again = probe("--request", "3", *words, into="other")
    assert again.returncode == 2
    assert "the worker sends 2" in again.stderr


def test_a_kill_at_a_file_write_is_placed_and_proven(
    probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """With strace: the effect exists, and the note of it is not written any more."""
    words = worker(
        """
        if done():
            sys.exit()
        call("{}") == 200 or sys.exit(1)
        finish()
        """
    )
    if shutil.which(strace.PROGRAM) is None:
        done = probe("--syscalls", "{folder}", *words)
        assert done.returncode == 2
        assert "strace is not installed" in done.stderr
        pytest.skip("strace is not installed")
    done = probe("--syscalls", "{folder}", *words)
    assert re.search(r"Killed at openat@done#\d +2 +0 +1 → 2 +SIGKILL", done.stdout)
    assert check(tmp_path / "found").sound
    with contextlib.suppress(FileNotFoundError):
        assert CONTROL not in os.listdir(tmp_path)


@needs_strace
def test_where_strace_may_not_follow_a_probe_says_so_before_anything_runs(
    tmp_path: Path, environment: dict[str, str], worker: Worker
) -> None:
    """Another one follows already: that its calls are not seen is no fault of the worker's."""
    words = worker("open('ran', 'w').close(); call('{}'); finish()")
    probing = rcr("probe", "--syscalls", "{folder}", "--into", "found", *words)
    done = subprocess.run(
        [strace.PROGRAM, "-f", "-qqq", "-o", os.devnull, "-e", "trace=none", *probing],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "strace may not follow a process here" in done.stderr
    assert "no other tracer" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"worker.py"}


@needs_strace
def test_a_file_whose_name_is_no_text_is_refused_before_anything_strikes(
    probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """No cell can name it."""
    words = worker(
        """
        call("{}") == 200 or sys.exit(1)
        open(os.fsencode(os.environ["RCR_FOLDER"]) + os.environb[b"NAMED"], "w").close()
        """
    )
    named = os.fsdecode(b"NAMED=/a\xff")
    done = probe("--syscalls", "{folder}", "--", "env", named, *words[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert "whose name is no UTF-8 text: 'a\\udcff'" in done.stderr
    assert not (tmp_path / "found").exists()


@needs_strace
@pytest.mark.parametrize("watched", ["{folder}", "{folder}/jobs", "{folder}/jobs/jobs"])
def test_what_is_struck_is_the_file_and_not_the_folder_of_its_name(
    probe: Probe, worker: Worker, watched: str
) -> None:
    """Nor is it missed where the file itself is watched."""
    words = worker(
        """
        jobs = folder + "/jobs"
        os.makedirs(jobs, exist_ok=True)
        if os.path.exists(jobs + "/jobs"):
            sys.exit()
        call("{}") == 200 or sys.exit(1)
        open(jobs + "/jobs", "w").close()
        """
    )
    done = probe("--syscalls", watched, *words)
    assert re.search(r"Killed at openat@(jobs/)?jobs#1 +2 +0 +1 → 2 +SIGKILL", done.stdout)
    assert "unknown" not in done.stdout


@needs_strace
def test_a_kill_of_many_threads_is_placed_at_the_one_that_made_the_call(
    probe: Probe, worker: Worker
) -> None:
    """The log tells of the end of each thread, and of the struck one last of all, perhaps."""
    words = worker(
        """
        import threading
        for _ in range(12):
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        if done():
            sys.exit()
        call("{}") == 200 or sys.exit(1)
        finish()
        """
    )
    done = probe("--syscalls", "{folder}", *words)
    assert re.search(r"Killed at openat@done#\d +2 +0 +1 → 2 +SIGKILL", done.stdout)
    assert "unknown" not in done.stdout


def test_what_the_folder_held_is_kept(probe: Probe, worker: Worker, tmp_path: Path) -> None:
    """A probe that is repeated replaces nothing; and it refuses a folder that holds no evidence."""
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "mine.txt").write_text("mine")
    done = probe(*worker('call("{}")'))
    assert done.returncode == 2
    assert "--into" in done.stderr
    assert (tmp_path / "found" / "mine.txt").read_text() == "mine"


def test_the_evidence_of_another_plan_is_not_moved(
    probe: Probe, worker: Worker, tmp_path: Path
) -> None:
    """It is refused before anything runs, as a run refuses it."""
    made.small(tmp_path / "found")
    done = probe(*worker('call("{}")'))
    assert done.returncode == 2
    assert "holds another plan" in done.stderr
    assert check(tmp_path / "found").sound

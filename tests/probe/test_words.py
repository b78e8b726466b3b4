"""What a probe makes of words: commands, a log of calls, and requests that are told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rcr_probes import strace
from rcr_probes.errors import RcrError
from rcr_probes.probe import Command
from rcr_probes.probe.attribute import Attribution, attribution
from rcr_probes.receiver import Request
from rcr_probes.strace import CallPoint

REQUEST = Request(1, 1, "POST", "/charges?t=1", "k", "aa", 2, 0, None, "effect", 200, True, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python w.py --to {receiver}", ("python", "w.py", "--to", "{receiver}")),
        ("python w.py 'two words'", ("python", "w.py", "two words")),
        ("echo 1 > {folder}/n", ("sh", "-c", "echo 1 > {folder}/n")),
        ("URL={receiver} ./w", ("sh", "-c", "URL={receiver} ./w")),
        ("./w || true", ("sh", "-c", "./w || true")),
    ],
)
def test_a_command_is_split_or_given_to_a_shell(text: str, words: tuple[str, ...]) -> None:
    """What only a shell understands, a shell gets whole; what it is given is filled in."""
    command = Command.parsed(text)
    assert command.words == words
    filled = command.filled("http://127.0.0.1:1", "/f")
    assert not any("{" in word for word in filled)


@pytest.mark.parametrize("text", ["", "  ", "python 'w.py"])
def test_what_is_no_command_is_refused(text: str) -> None:
    """Before anything is run."""
    with pytest.raises(RcrError):
        Command.parsed(text)


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("{receiver}/charges?at={folder}", "http://r/charges?at=/f"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": {"to": "{receiver}", "n": [{}]}}', '{"a": {"to": "http://r", "n": [{}]}}'),
        ('{"at":{folder}}', '{"at":/f}'),
        ("@{folder}/body.json", "@/f/body.json"),
        ("{{jobs}}", "{jobs}"),
        ("{{folder}}", "{folder}"),
        ("{{{jobs}}}", "{{jobs}}"),
        ("${HOME} %{http_code} stash@{0} x{2} {a,b} {} {{.Name}} {jobs", None),
    ],
)
def test_a_name_in_braces_is_filled_in_and_all_other_braces_stay(
    word: str, filled: str | None
) -> None:
    """JSON, a shell's variables, formats; a name that is meant as it stands has braces doubled."""
    command = Command(("true", word))
    command.require()
    assert command.filled("http://r", "/f") == ["true", filled or word]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("./w {foldr}/jobs.db", "Did you mean '{folder}'? Known: {receiver}, {folder}. "),
        ("./w {jobs}", "Known: {receiver}, {folder}. "),
        ("sqlite3 {foldr}/a < b", "Did you mean '{folder}'?"),
        ('./w {"a": {"b": {recever}}}', "Did you mean '{receiver}'?"),
    ],
)
def test_a_name_in_braces_that_nothing_knows_is_refused(text: str, says: str) -> None:
    """With what is known, and how to write it where it is meant as it stands."""
    with pytest.raises(RcrError) as caught:
        Command.parsed(text).require()
    name = caught.value.cause.split("'")[1]
    assert caught.value.cause == f"Unknown placeholder: '{name}'."
    assert says in caught.value.remedy
    assert caught.value.remedy.endswith(f"doubled: {{{name}}}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gone",), "written ./NAME"),
        (("./worker.sh", "{folder}"), "chmod +x ./worker.sh"),
        (("sh ./worker.sh {folder} | cat",), "Leave the quotes around the whole out"),
        (("sh ./worker.sh", "{folder}"), "Leave the quotes around the whole out"),
    ],
)
def test_a_program_that_cannot_be_run_is_refused(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to type instead: it is missing, may not be executed, or is a whole line."""
    monkeypatch.chdir(tmp_path)
    Path("worker.sh").write_text("true")
    with pytest.raises(RcrError) as caught:
        Command(words).require()
    assert says in caught.value.remedy


def test_a_program_that_setup_puts_into_the_folder_is_not_looked_for() -> None:
    """Nothing of it is there before the first strike."""
    Command(("{folder}/worker",)).require()


LOG = """\
7 openat(AT_FDCWD</p>, "/w/jobs.db", O_RDWR|O_CREAT, 0644) = 3</w/jobs.db>
7 pwrite64(3</w/jobs.db>, ""..., 10, 0) = 10
8 pwrite64(4</w/jobs.db>, ""..., 10, 0 <unfinished ...>
7 rename("/w/new", "/w/old") = 0
8 <... pwrite64 resumed>) = 10
7 openat(AT_FDCWD</w>, "jobs.db", O_RDONLY) = 5</w/jobs.db>
7 write(1</elsewhere>, ""..., 3) = 3
7 pwrite64(3</w/jobs.db>, ""..., 10, 0) = ?
8 +++ killed by SIGKILL +++
7 +++ killed by SIGKILL +++
"""


def test_the_log_lists_the_calls_that_change_a_file() -> None:
    """Each counted in its own process; one that only reads is none."""
    found = strace.calls(LOG, "/w")
    assert [f"{call.pid} {call.point}" for call in found if call.changes] == [
        "7 openat@jobs.db#1",
        "7 pwrite64@jobs.db#1",
        "8 pwrite64@jobs.db#1",
        "7 rename@new#1",
        "7 pwrite64@jobs.db#2",
    ]


def test_a_call_on_the_watched_folder_is_none_on_a_file_of_its_name() -> None:
    """Each is told, and found again, by the path that it has."""
    log = '7 mkdir("/w") = 0\n7 fsync(3</w>) = 0\n7 fsync(4</w/w>) = 0\n7 rename("/w", "/v") = 0\n'
    found = strace.calls(log, "/w")
    assert [str(call.point) for call in found] == ["fsync@.#1", "fsync@w#1", "rename@.#1"]
    assert all(strace.parse(str(call.point)) == call.point for call in found)
    assert [strace.located(call.point, "/w") for call in found] == ["/w", "/w/w", "/w"]


def test_of_a_watched_file_the_calls_that_change_it_are_listed_alone() -> None:
    """Also the rename that puts another one in its place: strace knows that by the other's path."""
    log = '7 rename("/w/new", "/w/jobs.db") = 0\n'
    found = [str(call.point) for call in strace.calls(LOG + log, "/w", "jobs.db")]
    assert (found[0], found[-1]) == ("openat@jobs.db#1", "rename@new#2")
    assert all("@jobs.db#" in point for point in found[:-1])


def test_only_the_call_at_which_a_process_was_killed_was_struck() -> None:
    """The other thread died too, but its last call had come back."""
    assert strace.struck(LOG, CallPoint("pwrite64", "jobs.db", 2), "/w")
    assert not strace.struck(LOG, CallPoint("pwrite64", "jobs.db", 1), "/w")
    alive = LOG.replace("7 +++ killed by SIGKILL +++\n", "")
    assert not strace.struck(alive, CallPoint("pwrite64", "jobs.db", 2), "/w")


def test_a_point_is_read_as_it_is_written() -> None:
    """A named point of a runtime is none of these."""
    assert str(strace.parse("pwrite64@jobs.db#3")) == "pwrite64@jobs.db#3"
    assert strace.parse("after_action") is None
    assert strace.parse("getpid@jobs.db#1") is None


def told(second: Request, *others: Request) -> Attribution:
    return attribution([[REQUEST], [second]], [REQUEST], [[one] for one in others])


def test_requests_are_told_apart_as_finely_as_they_stay_the_same() -> None:
    """By payload; by path where payloads differ; else they are only counted."""
    body, path = replace(REQUEST, body_sha256="bb"), replace(REQUEST, path="/charges/7")
    assert told(REQUEST, REQUEST).level == "payload"
    assert told(body).level == "path"
    assert told(REQUEST, body).level == "path"
    assert told(path).level == "count"
    assert told(REQUEST).label(body) == "other"
    assert told(body).label(body) == "path-1"
    assert told(path).label(body) is None


def test_a_surplus_effect_is_named_like_the_one_that_it_doubles() -> None:
    """And one that no control made is another."""
    other = replace(REQUEST, body_sha256="bb")
    assert told(REQUEST).kinds([REQUEST, REQUEST, other]) == ["1", "1", "other"]

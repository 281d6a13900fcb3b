"""Workers: asked by lines, held to the protocol, ended with all that they started.

The right answers come from a runner that does as it is told; the wrong ones from
programs that stand in for the Python of another environment.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import fake_runner

from modicum.core.errors import Code, ModicumError, UnavailableError, UsageError
from modicum.integrations.workers.child import LINE_MAX, PROTOCOL
from modicum.integrations.workers.parent import Worker
from modicum.integrations.workers.runner import Runner

FAKE = Runner(
    library="Fake",
    file=Path(fake_runner.__file__),
    versions={"fake": ("1.2",)},
    install="pip install fake",
    doing={"rows": "reading rows"},
)
LONG = 120.0
HELLO = json.dumps(
    {"answer": "hello", "result": {"protocol": PROTOCOL, "versions": {"fake": "1.2"}}}
).encode()


@pytest.fixture
def worker() -> Iterator[Worker]:
    one = Worker(FAKE, sys.executable)
    yield one
    one.close()


def job(verb: str, **told: Any) -> dict[str, Any]:
    return {"prepare": None, "run": {"do": verb, **told}}


def alive(pid: int) -> bool:
    """Return whether a process runs: those that wait to be reaped do not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def eventually(true: Callable[[], bool]) -> bool:
    """Wait for something that must happen; only a failure takes long."""
    deadline = time.monotonic() + LONG
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def stand_in(folder: Path, script: str) -> Path:
    """Return a program that is no Python, whatever it is asked."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def everything(error: BaseException | None) -> str:
    """Return all that an error says, and those that it hangs on."""
    said = ""
    while error is not None:
        said += repr(error)
        if isinstance(error, ModicumError):
            said += error.render()
        error = error.__cause__ or error.__context__
    return said


# --- the protocol is kept -----------------------------------------------------------


@pytest.mark.parametrize("back", [None, 1, "ä\n", [1, {"a": "b"}], "x" * 500_000])
def test_an_answer_comes_back_as_it_is(worker: Worker, back: Any) -> None:
    worker.prepare({"prepare": {"do": "echo", "back": 1}}, seconds=LONG)
    for _ in range(2):
        found = worker.run(job("echo", back=back), seconds=LONG)
        assert json.loads(found) == back


def test_a_worker_knows_nothing_that_it_was_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hidden")
    monkeypatch.setenv("PYTHONPATH", "hidden")
    monkeypatch.setenv("LANG", "C.UTF-8")
    one = Worker(FAKE, sys.executable)
    seen = json.loads(one.run(job("tell", token="hidden"), seconds=LONG))
    assert "hidden" not in json.dumps([seen["variables"], seen["arguments"]])
    assert seen["variables"]["LANG"] == "C.UTF-8"
    assert seen["variables"]["TMPDIR"] == seen["folder"] == str(one.scratch)
    assert seen["mode"] == "0o700"
    one.close()
    assert not one.scratch.exists()


def test_the_python_of_an_environment_is_called_by_its_own_name(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    one = Worker(FAKE, link)
    seen = json.loads(one.run(job("tell"), seconds=LONG))
    one.close()
    assert seen["arguments"][0] == str(link)


# --- before anything is spent -------------------------------------------------------


@pytest.mark.parametrize(
    ("versions", "right"),
    [
        ({"fake": ("1.2",)}, True),
        ({"fake": ("1.2.3",)}, True),
        (
            {
                "fake": (
                    "0.9",
                    "1",
                )
            },
            True,
        ),
        ({}, True),
        ({"fake": ("1.20", "1.2.30", "2", "1.2.3.0", "")}, False),
        ({"fake": ()}, False),
        ({"other": ("1",)}, False),
    ],
)
def test_only_versions_that_were_tried_are_run(
    versions: dict[str, tuple[str, ...]], right: bool
) -> None:
    runner = replace(FAKE, versions=versions)
    if right:
        Worker(runner, sys.executable).close()
        return
    with pytest.raises(UsageError, match=f"run with {next(iter(versions))}") as caught:
        Worker(runner, sys.executable)
    assert caught.value.code is Code.NOT_SUPPORTED
    assert "nothing was started or spent" in caught.value.render()


def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    told = HELLO.replace(b'"protocol": 1', b'"protocol": 2').decode()
    with pytest.raises(UsageError, match="uses version 2 of the protocol"):
        Worker(FAKE, stand_in(tmp_path, f"echo '{told}'; exec sleep 1000"))


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="could not be run"):
        Worker(FAKE, tmp_path / "nothing")
    plain = tmp_path / "plain"
    plain.write_text("")
    with pytest.raises(UsageError, match="could not be run"):
        Worker(FAKE, plain)


def test_a_runner_that_cannot_be_loaded_is_told_by_its_class_only(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(f"raise LookupError({fake_runner.SECRET!r})")
    with pytest.raises(UnavailableError, match=r"\(LookupError\)") as caught:
        Worker(replace(FAKE, file=broken), sys.executable)
    assert fake_runner.SECRET not in everything(caught.value)


# --- what goes wrong is told without a word of it -----------------------------------


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("ValueError", "ValueError"),
        ("SystemExit", "SystemExit"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("Kind of row-4711", "Exception"),
        ("Ä", "Exception"),
        ("K" * 200, "K" * 80),
    ],
)
def test_a_failure_tells_its_place_and_class(
    worker: Worker, kind: str, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnavailableError) as caught:
        worker.run(job("raise", kind=kind), seconds=LONG)
    said = caught.value.problems[0].message
    assert said == f"Fake failed reading rows ({shown})"
    assert fake_runner.SECRET not in everything(caught.value)
    assert capfd.readouterr() == ("", "")
    assert not worker.scratch.exists()


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("die", {"signal": signal.SIGKILL}),
        ("die", {"signal": signal.SIGSEGV}),
        ("exit", {"code": 0}),
        ("exit", {"code": 3}),
    ],
)
def test_an_early_end_is_no_answer(
    worker: Worker, verb: str, told: dict[str, int]
) -> None:
    with pytest.raises(UnavailableError, match="ended without a response"):
        worker.run(job(verb, **told), seconds=LONG)
    with pytest.raises(UnavailableError, match="ended without a response"):
        worker.run(job("echo", back=1), seconds=LONG)


def test_an_answer_that_is_too_long_is_not_given(worker: Worker) -> None:
    with pytest.raises(UnavailableError, match="OverflowError"):
        worker.run(job("long", length=LINE_MAX), seconds=LONG)


def test_a_request_that_is_too_long_is_not_sent(worker: Worker) -> None:
    with pytest.raises(UsageError, match="more than 1048576"):
        worker.run(job("echo", back="x" * LINE_MAX), seconds=LONG)


def test_a_worker_that_is_silent_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"not responded within 0\.2 seconds"):
        Worker(FAKE, stand_in(tmp_path, "exec sleep 1000"), hello_seconds=0.2)


def test_a_worker_that_does_not_listen_is_not_waited_for(tmp_path: Path) -> None:
    silent = stand_in(tmp_path, f"echo '{HELLO.decode()}'; exec sleep 1000")
    one = Worker(FAKE, silent)
    with pytest.raises(UnavailableError, match="not responded within"):
        one.run(job("echo", back="x" * (LINE_MAX // 2)), seconds=0.2)


@pytest.mark.parametrize(
    "script",
    [
        "exec yes",
        "exec cat /dev/zero",
        "echo hello",
        f"echo '{HELLO.decode()}'; echo more",
        f"printf '%s' '{HELLO.decode()}'",
        'echo "$(head -c 500000 /dev/zero | tr "\\0" "[")"',
        "exit 1",
        ":",
    ],
    ids=["lines", "no-line", "no-json", "more", "no-end", "deep", "exit", "nothing"],
)
def test_what_is_not_the_protocol_is_no_answer(tmp_path: Path, script: str) -> None:
    """Also without an end: what is read has a limit."""
    with pytest.raises(
        UnavailableError, match=r"an invalid response|without a response"
    ):
        # What comes after the answer may come late: a worker that is asked looks.
        Worker(FAKE, stand_in(tmp_path, script)).run(job("echo"), seconds=LONG)


def is_hello(said: bytes) -> bool:
    """Return whether bytes are one line that greets rightly: an oracle."""
    if said.count(b"\n") != 1 or not said.endswith(b"\n"):
        return False
    try:
        found = json.loads(said)
    except ValueError:
        return False
    return bool(
        isinstance(found, dict)
        and found == json.loads(HELLO)
        and found.keys() == {"answer", "result"}
        and type(found["result"]["protocol"]) is int
    )


PIECES = st.sampled_from(
    [HELLO, b"\n", b"{", b"}", b'"answer"', b":", b'"hello"', b",", b"\xff", b"1", b" "]
)
CHANGED = st.builds(
    lambda at, more: HELLO[:at] + more + HELLO[at + 1 :] + b"\n",
    st.integers(0, len(HELLO)),
    st.binary(max_size=2),
)


@settings(max_examples=examples(60), deadline=None)
@given(
    said=st.one_of(
        st.just(HELLO + b"\n"),
        CHANGED,
        st.binary(min_size=1, max_size=3).map(lambda more: HELLO + b"\n" + more),
        st.lists(PIECES, max_size=4).map(b"".join),
        st.binary(max_size=50),
    )
)
def test_nothing_but_the_greeting_is_taken_for_it(
    said: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("said")
    (folder / "said").write_bytes(said)
    program = stand_in(folder, f"read asked; exec cat '{folder / 'said'}'")
    if is_hello(said):
        Worker(FAKE, program).close()
        return
    with pytest.raises((UnavailableError, UsageError)) as caught:
        Worker(FAKE, program)
    assert caught.value.code in {
        Code.ENGINE_FAILED,
        Code.NOT_SUPPORTED,
        Code.UNKNOWN_VERSION,
    }


# --- its end ------------------------------------------------------------------------


def test_what_a_worker_started_ends_with_it(worker: Worker, tmp_path: Path) -> None:
    note = tmp_path / "note"
    with pytest.raises(UnavailableError, match="not responded within"):
        # Long enough to write the note; it never answers.
        worker.run(job("hang", note=str(note)), seconds=2)
    assert eventually(note.exists)
    pids = [int(pid) for pid in note.read_text().split()[:2]]
    assert eventually(lambda: not any(map(alive, pids)))
    assert not worker.scratch.exists()


def test_a_worker_that_nobody_holds_is_ended() -> None:
    one = Worker(FAKE, sys.executable)
    seen, scratch = one._close.peek(), one.scratch
    assert seen is not None
    pid = seen[2][0].pid
    assert alive(pid)
    del one, seen
    gc.collect()
    assert eventually(lambda: not alive(pid))
    assert not scratch.exists()


def test_a_copy_of_the_parent_ends_nothing(worker: Worker) -> None:
    child = os.fork()
    if child == 0:
        worker.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(worker.run(job("echo", back=7), seconds=LONG)) == 7


def test_closing_twice_is_closing(worker: Worker) -> None:
    worker.close()
    worker.close()
    with pytest.raises(UnavailableError, match="ended without a response"):
        worker.prepare({"prepare": None}, seconds=LONG)

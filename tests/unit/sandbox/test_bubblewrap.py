"""The tier `bubblewrap`: what it runs, what it takes, and each of its fences alone."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from samples.escapes import ATTEMPTS, Attempt
from samples.sandboxed import python, sandbox, users, world

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Code, InputError, UnavailableError
from modicum.escrow.programs import Range, Table
from modicum.sandbox import bubblewrap, requirements, root
from modicum.sandbox.bubblewrap import Bubblewrap
from modicum.sandbox.cgroups import Groups
from modicum.sandbox.seccomp import filter_bytes

AT_A_TIME = 8
SHORT = Limits(seconds=2.0, memory_bytes=2**28, processes=16)
ROOMY = Limits(seconds=8.0, memory_bytes=2**30, processes=8)
TABLE = Table(("age", "ill"), ((30, True), (41, False), (None, True), (2.5, False)))
WIDE = Range(Fraction(-1000), Fraction(1000))


@pytest.fixture(scope="module")
def held() -> Bubblewrap:
    return sandbox(AT_A_TIME)


def named(name: str) -> Attempt:
    return next(attempt for attempt in ATTEMPTS if attempt.name == name)


def test_a_program_is_given_tables_arguments_and_reference(held: Bubblewrap) -> None:
    program = python(
        """
def score(tables, arguments, reference):
    table = tables["people"]
    assert table == {"columns": ["age", "ill"], "rows":
        [[30, True], [41, False], [None, True], [2.5, False]]}
    assert reference == {"exact": {"columns": ["n"], "rows": [[7]]}}
    ages = [row[0] for row in table["rows"] if row[0] is not None]
    return sum(ages) * arguments["by"] + reference["exact"]["rows"][0][0]
""",
        {"by": 2},
        WIDE,
    )
    reference = {"exact": Table(("n",), ((7,),))}
    assert held.score(program, {"people": TABLE}, reference, SHORT) == 154.0


def test_scikit_learn_works_inside(held: Bubblewrap) -> None:
    program = python(
        """
import numpy, warnings
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

def score(tables, arguments, reference):
    draw = numpy.random.default_rng(1)
    x = draw.normal(size=(300, 4))
    y = (x[:, 0] + 0.1 * draw.normal(size=300) > 0).astype(int)
    scores = [
        cross_val_score(LogisticRegression(), x, y).mean(),
        cross_val_score(RandomForestClassifier(20, n_jobs=2), x, y, cv=2).mean(),
        HistGradientBoostingClassifier(max_iter=5).fit(x, y).score(x, y),
        roc_auc_score(y, KMeans(2, n_init=1, random_state=0).fit(x).labels_) >= 0,
    ]
    return float(min(scores))
"""
    )
    score = held.score(program, {}, None, ROOMY)
    assert score is not None
    assert score > 0.85


def test_the_same_program_has_the_same_score(held: Bubblewrap) -> None:
    program = python("def score(*_):\n    return abs(hash('a text')) % 1000", span=WIDE)
    with ThreadPoolExecutor(2) as threads:
        scores = list(
            threads.map(lambda _: held.score(program, {}, None, SHORT), range(2))
        )
    assert scores[0] is not None
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    "code",
    [
        "this is no Python",
        "def other(): pass",
        "score = 3",
        "def score(a):\n    return 1",
        "def score(*_):\n    return None",
        "def score(*_):\n    return True",
        "def score(*_):\n    raise ValueError",
        "import sys\nsys.exit(3)",
        "import numpy\ndef score(*_):\n    return numpy.array([1.0])",
        b"\xff\xfe",
    ],
)
def test_what_tells_no_number_has_no_score(held: Bubblewrap, code: str | bytes) -> None:
    started = time.monotonic()
    assert held.score(python(code), {}, None, SHORT) is None
    assert time.monotonic() - started >= SHORT.seconds


def test_nothing_is_kept_from_run_to_run(held: Bubblewrap) -> None:
    program = python(
        """
import builtins, os, sys
def score(*_):
    kept = getattr(builtins, "kept", 0) + len(os.environ.get("KEPT", ""))
    builtins.kept, os.environ["KEPT"] = 1, "x"
    for folder in ("/", "/tmp", "/dev/shm", ".", "/packages"):
        if os.path.exists(folder + "/kept"):
            return 1.0
        try:
            open(folder + "/kept", "w").close()
        except OSError:
            continue
    return float(kept)
"""
    )
    scores = {held.score(program, {}, None, SHORT) for _ in range(2)}
    assert scores == {0.0}


def test_input_that_is_too_large_has_no_score(
    held: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = python("def score(*_):\n    return 1.0")
    assert held.score(program, {"t": TABLE}, None, SHORT) == 1.0
    monkeypatch.setattr("modicum.sandbox.job.JOB_BYTES_MAX", 100)
    started = time.monotonic()
    assert held.score(program, {"t": TABLE}, None, SHORT) is None
    assert time.monotonic() - started >= SHORT.seconds


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")
def test_root_runs_it_as_the_user_that_was_named(held: Bubblewrap) -> None:
    program = python("import time\ndef score(*_):\n    time.sleep(60)")
    assert held.uid is not None
    mine = set(range(held.uid, held.uid + AT_A_TIME))
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(held.score, program, {}, None, SHORT)
        time.sleep(1.0)
        assert len([uid for uid in real_uids() if uid in mine]) == 1
        run.result()
    assert not mine & set(real_uids())


def real_uids() -> list[int]:
    """Return the real users of all processes of this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            for line in (folder / "status").read_text().splitlines():
                if line.startswith("Uid:"):
                    found.append(int(line.split()[1]))
        except OSError:
            continue
    return found


# Each fence without the ones before it.


def without_filter() -> bytes:
    """Return a filter that lets everything through."""
    import pyseccomp

    from modicum.sandbox import seccomp

    return seccomp._exported(pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW))


def test_namespaces_hold_without_the_filter(
    held: Bubblewrap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = without_filter()
    assert len(loose) < len(filter_bytes(files=True))
    monkeypatch.setattr(bubblewrap, "filter_bytes", lambda **_: loose)
    names = [
        *("tcp-connect", "unix-abstract-socket", "unix-path-socket", "read-passwd"),
        *("read-vault", "read-project", "write-outside", "overwrite-canary"),
        *("write-to-root", "write-to-usr", "write-to-site-packages", "fill-disk"),
        *("proc-self-root", "proc-environment-of-others", "outlive-as-daemon"),
        *("signal-victim", "trace-victim", "read-memory-of-victim", "make-device"),
        *("become-root", "change-root", "mount", "device-kernel-messages"),
        *("environment-secret", "inherited-handle", "raw-socket", "load-bpf"),
    ]
    with world(tmp_path / "w", later=2.2) as around:

        def tried(name: str) -> tuple[str, float | None]:
            program = python(named(name).code, around.given)
            return name, held.score(program, {}, None, SHORT)

        with ThreadPoolExecutor(AT_A_TIME) as threads:
            result = dict(threads.map(tried, names))
        if held.uid is not None:  # Nobody else is one of these.
            mine = set(range(held.uid, held.uid + AT_A_TIME))
            assert not mine & set(real_uids())
        time.sleep(0.5)
        assert around.touched() == []
    # In namespaces a process of one's own is no escape: it is dead when they are.
    assert result.pop("outlive-as-daemon") == 1.0
    assert {name: score for name, score in result.items() if score} == {}


@pytest.mark.parametrize("name", ["thread-bomb", "memory-bomb", "spin"])
def test_limits_hold_without_control_groups(
    held: Bubblewrap, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(held, "_groups", Groups(None, None))
    attempt = named(name)
    score = held.score(python(attempt.code), {}, None, SHORT)
    assert score in attempt.expected


def test_as_many_threads_as_were_allowed_can_be_had(held: Bubblewrap) -> None:
    """Otherwise a limit that is always too low would look like a good one."""
    code = named("thread-bomb").code.replace(b"range(64)", b"range(12)")
    assert held.score(python(code), {}, None, SHORT) == 1.0


def test_a_sandbox_ends_with_the_process_that_made_it(
    held: Bubblewrap, tmp_path: Path
) -> None:
    script = textwrap.dedent(
        f"""
        from fractions import Fraction
        from modicum.escrow.programs import Program, Range
        from modicum.sandbox.factory import bubblewrap
        from modicum.api.ports.escrow import Limits
        code = b"def score(*_):\\n    while True: pass"
        program = Program("python", code, {{}}, Range(Fraction(0), Fraction(1)))
        held = bubblewrap({None if held.uid is None else held.uid - 8})
        held.check()
        print("checked", flush=True)
        held.score(program, {{}}, None, Limits(60.0, 2**28, 8))
        """
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"checked\n"
        deadline = time.monotonic() + 60
        # What watches it, what is first, and the program.
        while len(spinning := descendants(server.pid)) != 3:
            assert time.monotonic() < deadline, spinning
            time.sleep(0.05)
        server.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while any(map(is_alive, spinning)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, spinning))


def descendants(pid: int) -> list[int]:
    """Return all processes that a process started, and that they did."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


# What it takes.


def problems(check: Callable[[], None]) -> str:
    with pytest.raises(UnavailableError) as caught:
        check()
    assert all(p.code is Code.SANDBOX_MISSING for p in caught.value.problems)
    assert all(p.help for p in caught.value.problems)
    return str(caught.value)


def test_everything_that_is_missing_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_filter(**_: object) -> bytes:
        raise ImportError

    monkeypatch.setattr(requirements, "executable", lambda: Path("/nonexistent/bwrap"))
    monkeypatch.setattr(requirements, "filter_bytes", no_filter)
    monkeypatch.setattr(platform, "release", lambda: "5.10.0-1-amd64")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    result = problems(Bubblewrap().check)
    for token in ("bubblewrap is not", "pyseccomp", "5.10.0", "need a dedicated user"):
        assert token in result
    # And so does whoever does not check first.
    program = python("def score(*_):\n    return 1.0")
    assert problems(lambda: _ran(Bubblewrap().score(program, {}, None, SHORT)))


def _ran(score: float | None) -> None:
    raise AssertionError(score)


def test_an_old_bubblewrap_is_not_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.4.1\n")
    old.chmod(0o755)
    monkeypatch.setattr(requirements, "executable", lambda: old)
    assert "version 0.4.1, and 0.8.0 is required" in problems(Bubblewrap(users()).check)


def test_another_system_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert "this is Darwin" in problems(Bubblewrap(users()).check)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "LIBRARY", "no-such-library")
    root.python_root.cache_clear()
    try:
        assert "no-such-library is not" in problems(Bubblewrap(users()).check)
    finally:
        root.python_root.cache_clear()


@pytest.mark.parametrize("uid", [0, 99, 65534, 2**31 + 1])
def test_users_that_others_are_are_refused(
    monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "cannot run as" in problems(Bubblewrap(uid).check)


def test_a_user_that_something_runs_as_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "_IDLE_SECONDS", 0.1)
    monkeypatch.setattr(requirements, "_running", lambda: {5003})
    assert "other processes run as the user 5003" in problems(Bubblewrap(5000, 4).check)


def test_a_run_that_is_coming_to_its_end_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = iter([{5003}, {5003}, {5004}])
    monkeypatch.setattr(requirements, "_running", lambda: next(seen))
    requirements.must_be_idle(5000, 4)
    assert list(seen) == []


def test_others_than_root_name_no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root" in problems(Bubblewrap(5000).check)


def test_user_namespaces_that_are_switched_off_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    switch = tmp_path / "switch"
    switch.write_text("0\n")
    monkeypatch.setattr(
        requirements, "_SWITCHES", ((str(switch), "0", "switch it on"),)
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "disabled" in problems(Bubblewrap().check)


def test_a_sandbox_that_leaks_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox()  # There is one here, which does not leak.
    monkeypatch.setattr(bubblewrap, "filter_bytes", lambda **_: without_filter())
    with pytest.raises(UnavailableError) as caught:
        Bubblewrap(users()).check()
    assert caught.value.code is Code.SANDBOX_LEAKS
    assert "a new process" in str(caught.value)


def test_a_sandbox_in_which_nothing_runs_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox()
    monkeypatch.setattr(bubblewrap, "PACKAGES", "/nowhere")
    with pytest.raises(UnavailableError) as caught:
        Bubblewrap(users()).check()
    assert caught.value.code is Code.SANDBOX_LEAKS
    assert "a correct program has no score" in str(caught.value)


def test_a_bubblewrap_that_makes_nothing_is_unavailable(
    held: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "executable", lambda: Path("/bin/false"))
    started = time.monotonic()
    with pytest.raises(UnavailableError):
        held.score(python("def score(*_):\n    return 1"), {}, None, SHORT)
    assert time.monotonic() - started >= SHORT.seconds


def test_the_number_of_a_handle_does_not_tell_how_many_are_open(
    held: Bubblewrap,
) -> None:
    program = python(
        """
import os
def is_open(handle):
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True
def score(*_):
    return sum(2**handle for handle in range(9) if is_open(handle))
""",
        span=WIDE,
    )
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    try:
        found = held.score(program, {}, None, SHORT)
    finally:
        for handle in opened:
            os.close(handle)
    assert found == 0b1111


def test_a_module_is_not_for_it(held: Bubblewrap) -> None:
    from modicum.escrow.programs import Program

    module = Program("wasm", b"\0asm", {}, WIDE)
    with pytest.raises(InputError):
        held.score(module, {}, None, SHORT)


def test_handles_are_closed(held: Bubblewrap) -> None:
    program = python("def score(*_):\n    return 1")
    held.score(program, {}, None, SHORT)
    before = len(os.listdir("/proc/self/fd"))
    held.score(program, {}, None, SHORT)
    assert len(os.listdir("/proc/self/fd")) == before

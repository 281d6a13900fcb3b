"""The worker's side. It runs with the Python of another environment.

modicum cannot be imported there, only the standard library and the environment's own
packages. So this is a program, started by its path, with the path of a runner as its
argument: a module with `versions`, `prepare` and `run`.

A request is a line of JSON, and so is its response. It writes nothing else: neither the
runner's output nor an exception's message, only its place and its class. When the
parent is gone, so is the worker, with all that it started.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import Any, BinaryIO

#: Parent and worker must agree on it.
PROTOCOL = 1
#: A longer line is neither read nor written.
LINE_MAX = 2**20

_WORD_MAX = 80


class _Stage:
    """The present stage of the runner, for error reports."""

    def __init__(self) -> None:
        self.name = "runner"

    def __call__(self, name: str) -> None:
        self.name = name


def _own_pipes() -> tuple[BinaryIO, int]:
    """Return the pipes of the protocol; later printed output is discarded."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    return requests, answers


def _listen(requests: BinaryIO, inbox: SimpleQueue[bytes], scratch: Path) -> None:
    """Put requests into a queue; at their end, end all that was started here."""
    while line := requests.readline(LINE_MAX):
        inbox.put(line)
    shutil.rmtree(scratch, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _write(answers: int, answer: dict[str, Any]) -> None:
    line = json.dumps(answer, ensure_ascii=True).encode("ascii") + b"\n"
    if len(line) > LINE_MAX:
        raise OverflowError
    while line:
        line = line[os.write(answers, line) :]


def _loaded(path: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(Path(path).stem, path)
    if found is None or found.loader is None:
        raise ImportError
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _answered(answers: int, kind: str, stage: _Stage, work: Callable[[], Any]) -> bool:
    """Respond with the result of some work, or with the place of its failure."""
    try:
        _write(answers, {"answer": kind, "result": work()})
    except BaseException as error:  # noqa: BLE001 - also a script that exits
        name = type(error).__name__[:_WORD_MAX]
        named = name if name.isascii() and name.isidentifier() else "Exception"
        _write(answers, {"answer": "failed", "at": stage.name, "kind": named})
        return False
    return True


def main(runner_path: str) -> None:
    """Answer requests by a runner, until one fails or the parent is gone."""
    requests, answers = _own_pipes()
    inbox: SimpleQueue[bytes] = SimpleQueue()
    scratch = Path.cwd()
    Thread(target=_listen, args=(requests, inbox, scratch), daemon=True).start()
    stage = _Stage()
    runner: dict[str, ModuleType] = {}

    def hello() -> Any:
        runner["module"] = _loaded(runner_path)
        return {"protocol": PROTOCOL, "versions": runner["module"].versions()}

    def done() -> Any:
        request = json.loads(inbox.get())
        verb = {"prepare": "prepare", "run": "run"}[request["ask"]]
        return getattr(runner["module"], verb)(request["job"], scratch, stage)

    inbox.get()  # All versions of the protocol begin alike.
    well = _answered(answers, "hello", stage, hello)
    while well:
        well = _answered(answers, "done", stage, done)


if __name__ == "__main__":
    main(sys.argv[1])

"""The process of a WebAssembly program: it drops all privileges, then runs it.

A module gets memory and fuel, and nothing else: one with imports is refused. This file
runs as a program, by its path.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_LENGTH_BYTES = 8
_TABLE_ELEMENTS = 2**16
_STACK_BYTES = 2**20


def _rights() -> ModuleType:
    """Return the module beside this one that gives up rights."""
    file = Path(__file__).with_name("init_process.py")
    found = importlib.util.spec_from_file_location("inside", file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _config(memory_bytes: int) -> Any:
    """Return settings under which the same module on the same job does the same."""
    from wasmtime import Config

    config = Config()
    config.consume_fuel = True
    config.cranelift_nan_canonicalization = True
    config.parallel_compilation = False
    config.max_wasm_stack = _STACK_BYTES
    config.memory_reservation = memory_bytes
    config.memory_reservation_for_growth = 0
    config.memory_guard_size = 0
    for feature in (
        "wasm_threads",
        "shared_memory",
        "wasm_relaxed_simd",
        "wasm_memory64",
        "wasm_multi_memory",
        "wasm_component_model",
        "wasm_stack_switching",
        "wasm_gc",
        "wasm_exceptions",
    ):
        setattr(config, feature, False)
    return config


def _score(module: bytes, job: bytes, memory_bytes: int, fuel: int) -> float:
    """Return the score of a module; an error of any kind is that there is none."""
    from wasmtime import Engine, Func, Instance, Memory, Module, Store

    engine = Engine(_config(memory_bytes))
    compiled = Module(engine, module)
    if compiled.imports:
        return math.nan
    store = Store(engine)
    store.set_limits(memory_bytes, _TABLE_ELEMENTS, 1, 1, 1)
    store.set_fuel(fuel)
    exports = Instance(store, compiled, []).exports(store)
    memory, alloc, score = exports["memory"], exports["alloc"], exports["score"]
    if not (
        isinstance(memory, Memory)
        and isinstance(alloc, Func)
        and isinstance(score, Func)
        and _types(alloc, store) == (["i32"], ["i32"])
        and _types(score, store) == (["i32", "i32"], ["f64"])
    ):
        return math.nan
    start = alloc(store, len(job)) & 0xFFFFFFFF
    if start + len(job) > memory.data_len(store):
        return math.nan
    memory.write(store, bytearray(job), start)
    found: float = score(store, _signed(start), len(job))
    return found


def _types(function: Any, store: Any) -> tuple[list[str], list[str]]:
    kind = function.type(store)
    return [str(each) for each in kind.params], [str(each) for each in kind.results]


def _signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


def main() -> None:
    """Drop all privileges, run the module, and write its score."""
    settings = json.loads(sys.argv[1])
    sys.path[:] = [*sys.path, settings["packages"]]
    rights = _rights()
    given = rights.read_all(0)
    importlib.import_module("wasmtime")
    rights.keep_answer()
    os.dup2(1, 0)
    rights.confine(settings, bytes.fromhex(settings["filter"]))
    if os.getppid() != settings["parent"]:  # The parent has already ended.
        return
    length = int.from_bytes(given[:_LENGTH_BYTES], "big")
    module, job = given[_LENGTH_BYTES:][:length], given[_LENGTH_BYTES + length :]
    found = _score(module, job, settings["memory"], settings["fuel"])
    if not math.isnan(found):
        rights.write_score(found)


if __name__ == "__main__":
    try:
        main()
    finally:  # Whatever happened, its outcome is not reported.
        os._exit(0)

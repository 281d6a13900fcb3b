"""Compiling a loop, so that the machine code is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

_Loop = TypeVar("_Loop", bound=Callable[..., Any])


def compiled(loop: _Loop) -> _Loop:
    """Return a loop that is compiled when it is first called.

    The machine code is kept on disk, if there is a place where that is allowed. It is
    used as long as neither the loop has changed nor one that it calls: numba itself
    would look at the file of the loop alone, and go on with old code of the others.
    """
    try:
        made: Any = njit(cache=True)(loop)
    except RuntimeError:
        return cast("_Loop", njit(loop))
    made._cache._cache_file._source_stamp = code_digest(made)  # noqa: SLF001
    return cast("_Loop", made)


def code_digest(loop: Any) -> str:
    """Return a digest of a compiled loop's code, and of the loops that it calls."""
    code, around = loop.py_func.__code__, dict(loop.py_func.__globals__)
    for name in code.co_names:
        if isinstance(around.get(name), ModuleType):
            around = {**vars(around[name]), **around}
    parts = [code.co_code.hex(), repr(code.co_consts), repr(code.co_varnames)]
    for name in code.co_names:
        used = around.get(name)
        if hasattr(used, "py_func"):
            parts.append(code_digest(used))
        else:
            is_number = isinstance(used, (int, float, np.generic))
            parts.append(f"{name} = {used!r}" if is_number else name)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()

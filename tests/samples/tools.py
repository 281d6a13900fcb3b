"""The programs in `tools`, as modules."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).parents[2] / "tools"


@cache
def tool(name: str) -> ModuleType:
    """Return one of them."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

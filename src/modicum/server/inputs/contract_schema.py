"""The JSON Schema of what is asked of the escrow, and its limits."""

from __future__ import annotations

from typing import Any, Final

from modicum.api.local.escrow.proposal import LASTS_SECONDS, QUERIES_MAX
from modicum.escrow.blocks import BLOCKS_MAX, BLOCKS_MIN
from modicum.ledger.state.contract_checks import RECIPIENTS_MAX

#: A contract holds for so long at most: ten years.
LASTS_SECONDS_MAX: Final = 10 * 366 * 24 * 3600
#: A query file has so many characters at most.
QUERY_MAX: Final = 2**16
SECONDS_MAX: Final = 24 * 3600
MEMORY_MIB_MAX: Final = 2**20
USES_MAX: Final = 1_000_000
LANGUAGES: Final = ("python", "wasm")
NOISES: Final = ("laplace", "gaussian")

_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 200}
_CODE: Final = {"type": "string", "minLength": 1}
_PROGRAM: Final[dict[str, Any]] = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"task": {}, "evaluate": {}},
            "required": ["task", "evaluate"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "language": {"enum": list(LANGUAGES)},
                "code": _CODE,
                "code_base64": {**_CODE, "contentEncoding": "base64"},
                "arguments": {"type": "object"},
                "range": {
                    "type": "array",
                    "items": {"type": ["number", "string"]},
                    "minItems": 2,
                    "maxItems": 2,
                },
                "compares": {"type": "boolean"},
                "catalogue": {"type": "string", "maxLength": 200},
            },
            "required": ["range"],
            "additionalProperties": False,
        },
    ]
}
_BLOCKS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "minimum": BLOCKS_MIN, "maximum": BLOCKS_MAX},
        "loss": {"type": ["number", "string"]},
        "unit": _NAME,
        "noise": {"enum": list(NOISES)},
    },
    "required": ["number", "loss"],
    "additionalProperties": False,
}


def _asked(flow: str, required: tuple[str, ...], **own: Any) -> dict[str, Any]:
    properties = {
        "flow": {"const": flow},
        "contract": _NAME,
        "reason": {"type": "string", "minLength": 1, "maxLength": 2000},
        "lasts_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": LASTS_SECONDS_MAX,
            "default": LASTS_SECONDS,
        },
        "uses": {"type": "integer", "minimum": 1, "maximum": USES_MAX},
        **own,
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["flow", "contract", "reason", *required],
        "additionalProperties": False,
    }


_TO: Final = {"type": "array", "items": _NAME, "maxItems": RECIPIENTS_MAX}
#: The JSON Schema of what is asked.
SCHEMA: Final[dict[str, Any]] = {
    "oneOf": [
        _asked(
            "query",
            ("queries",),
            queries={
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": QUERY_MAX},
                "minItems": 1,
                "maxItems": QUERIES_MAX,
            },
            exact={"type": "boolean"},
            analyst=_NAME,
        ),
        _asked(
            "task",
            ("query", "program"),
            query=_NAME,
            program=_PROGRAM,
            tier={"enum": ["bubblewrap", "gvisor", "wasm"]},
            seconds={"type": "integer", "minimum": 1, "maximum": SECONDS_MAX},
            memory_mib={"type": "integer", "minimum": 1, "maximum": MEMORY_MIB_MAX},
            blocks=_BLOCKS,
        ),
        _asked("output", ("query",), query=_NAME, to=_TO),
        _asked("signal", ("task",), task=_NAME, to=_TO),
        _asked(
            "raw-signal",
            ("task",),
            task=_NAME,
            to=_TO,
            width={"type": ["number", "string"]},
            exact={"type": "boolean"},
        ),
    ]
}

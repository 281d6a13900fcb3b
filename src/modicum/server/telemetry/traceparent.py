"""The header `traceparent` of W3C Trace Context: read strictly, believed in nothing.

Whoever sends a request may write anything into it. It links a trace to another one, and
never names the trace of a request, nor decides whether it is recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: The header's name, as ASGI has it.
HEADER: Final = b"traceparent"

_FORM: Final = re.compile(
    rb"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})"
    rb"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.DOTALL,
)
_CHARACTERS_MAX: Final = 512


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The span that a request says it comes from.

    Attributes:
        trace: The id of its trace, 1 to 2^128 - 1.
        span: Its id, 1 to 2^64 - 1.
        is_sampled: Whether its owner says that it is recorded.
    """

    trace: int
    span: int
    is_sampled: bool


def trace_parent(headers: list[tuple[bytes, bytes]]) -> TraceParent | None:
    """Return the span that a request says it comes from; None if it says none.

    What is malformed, or sent twice, says none.

    Args:
        headers: The headers of the request, with names in lower case.

    Examples:
        >>> trace_parent([(b"traceparent", b"00-" + b"0" * 31 + b"a-" + b"0" * 15
        ...     + b"b-01")])
        TraceParent(trace=10, span=11, is_sampled=True)
    """
    sent = [value for name, value in headers if name == HEADER]
    if len(sent) != 1 or len(sent[0]) > _CHARACTERS_MAX:
        return None
    found = _FORM.fullmatch(sent[0])
    if found is None or found["version"] == b"ff":
        return None
    if found["version"] == b"00" and found["more"] is not None:
        return None
    trace, span = int(found["trace"], 16), int(found["span"], 16)
    if not (trace and span):
        return None
    return TraceParent(trace, span, is_sampled=bool(int(found["flags"], 16) & 1))

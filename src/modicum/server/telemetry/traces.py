"""Traces of requests. Ids and counts only, never a value.

Request headers are untrusted input. They link a trace to another one, but never
determine the trace id of a request, nor whether it is recorded.

Without a configured endpoint nothing is traced, and the SDK of OpenTelemetry is not
even imported. The provider is an argument; no global one is set.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from modicum.server.telemetry.tracebacks import kind_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Link, Span

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
    """The parent span in a request's headers.

    Attributes:
        trace: The id of its trace, 1 to 2^128 - 1.
        span: Its id, 1 to 2^64 - 1.
        is_sampled: Whether its owner recorded it.
    """

    trace: int
    span: int
    is_sampled: bool


def trace_parent(headers: list[tuple[bytes, bytes]]) -> TraceParent | None:
    """Return the parent span in a request's headers; None if there is none.

    A malformed or repeated header counts as none.

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


#: The attributes of a span: names defined in this program, and counts.
Attribute: TypeAlias = str | int

#: The name of the tracer.
_LIBRARY: Final = "modicum.server"


class Spanned(Protocol):
    """A span in progress."""

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes known by now."""
        ...


class Traces(Protocol):
    """Makes spans; one within another is its child."""

    def request(
        self, parent: TraceParent | None
    ) -> AbstractContextManager[tuple[str, Spanned]]:
        """Open the span of a request."""
        ...

    def span(self, name: str) -> AbstractContextManager[Spanned]:
        """Open a span within the one that is open."""
        ...

    def close(self) -> None:
        """Send pending spans."""
        ...


class _Nothing:
    """A span that is not recorded."""

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add nothing."""


_NOTHING: Final = _Nothing()
_ID_BYTES: Final = 16
_IDS: Final = 64
_NO_SPAN: Final = nullcontext(_NOTHING)


class NoTraces:
    """Records nothing; requests have ids all the same."""

    def __init__(self) -> None:
        self._random = b""

    def request(
        self, parent: TraceParent | None
    ) -> AbstractContextManager[tuple[str, Spanned]]:
        """Return an id for a request."""
        # Many at once: each call of the system may cost a switch of threads.
        if len(self._random) < _ID_BYTES:
            self._random = secrets.token_bytes(_ID_BYTES * _IDS)
        own, self._random = self._random[:_ID_BYTES], self._random[_ID_BYTES:]
        return nullcontext((own.hex(), _NOTHING))

    def span(self, name: str) -> AbstractContextManager[Spanned]:
        """Return nothing."""
        return _NO_SPAN

    def close(self) -> None:
        """Do nothing."""


class OpenTelemetry:
    """Makes spans of OpenTelemetry.

    Args:
        provider: The provider of spans.
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        self._provider = provider
        self._tracer = provider.get_tracer(_LIBRARY)
        self._nowhere = Context()
        self._server = SpanKind.SERVER

    @contextmanager
    def request(self, parent: TraceParent | None) -> Iterator[tuple[str, Spanned]]:
        """Open the span of a request, the root of a new trace."""
        opened = self._tracer.start_as_current_span(
            "http.request",
            context=self._nowhere,  # Request headers are not trusted.
            kind=self._server,
            links=_links(parent),
            record_exception=False,  # Its message may contain rows.
            set_status_on_exception=False,
        )
        with opened as span, _failing(span):
            yield f"{span.get_span_context().trace_id:032x}", _Span(span)

    @contextmanager
    def span(self, name: str) -> Iterator[Spanned]:
        """Open a span within the one that is open."""
        with (
            self._tracer.start_as_current_span(
                name, record_exception=False, set_status_on_exception=False
            ) as span,
            _failing(span),
        ):
            yield _Span(span)

    def close(self) -> None:
        """Send pending spans, and shut down the provider."""
        self._provider.shutdown()


class _Span:
    """A span of OpenTelemetry.

    Args:
        span: The span.
    """

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes known by now."""
        for name, value in attributes.items():
            self._span.set_attribute(name, value)


@contextmanager
def _failing(span: Span) -> Iterator[None]:
    """Record the type of an exception, and nothing of its message."""
    try:
        yield
    except Exception as error:
        span.set_attribute("error.type", kind_of(error))
        raise


def _links(parent: TraceParent | None) -> list[Link]:
    if parent is None:
        return []
    from opentelemetry.trace import Link, SpanContext, TraceFlags

    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    return [Link(SpanContext(parent.trace, parent.span, True, flags))]  # noqa: FBT003


def traces_to(endpoint: str | None, version: str, ledger: str = "") -> Traces:
    """Return the tracer of a collector; `ledger` names a further ledger."""
    if not endpoint:
        return NoTraces()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    about = {"service.name": "modicum", "service.version": version}
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource(about | ({"modicum.ledger": ledger} if ledger else {})),
        shutdown_on_exit=False,  # The server ends it.
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return OpenTelemetry(provider)

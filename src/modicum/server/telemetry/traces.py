"""Traces: what a request spends its time on. Ids and counts only, never a value.

Nothing is traced, and the SDK of OpenTelemetry not even imported, unless somebody says
where traces go. The provider is an argument; none is set for the process.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from modicum.server.telemetry.tracebacks import kind_of
from modicum.server.telemetry.traceparent import TraceParent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Link, Span

#: What a span may say of itself: names that are written in this program, and counts.
Attribute: TypeAlias = str | int

#: What the program that traces is called.
_LIBRARY: Final = "modicum.server"


class Spanned(Protocol):
    """A span that is under way."""

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add what is known by now.

        Args:
            attributes: Counts, and names that are written in this program.
        """
        ...


class Traces(Protocol):
    """Makes spans; one within another is its child."""

    def request(
        self, parent: TraceParent | None
    ) -> AbstractContextManager[tuple[str, Spanned]]:
        """Open the span of a request.

        Args:
            parent: The span that it says it comes from, for a link.

        Returns:
            The id of its trace, 32 hexadecimal digits, and the span.
        """
        ...

    def span(self, name: str) -> AbstractContextManager[Spanned]:
        """Open a span within the one that is open.

        Args:
            name: What it spends its time on.
        """
        ...

    def close(self) -> None:
        """Send what was not sent yet."""
        ...


class _Nothing:
    """A span that nobody records."""

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add nothing."""


_NOTHING: Final = _Nothing()
_NO_SPAN: Final = nullcontext(_NOTHING)


class NoTraces:
    """Records nothing; requests have ids all the same."""

    def request(
        self, parent: TraceParent | None
    ) -> AbstractContextManager[tuple[str, Spanned]]:
        """Return an id for a request."""
        return nullcontext((secrets.token_hex(16), _NOTHING))

    def span(self, name: str) -> AbstractContextManager[Spanned]:
        """Return nothing."""
        return _NO_SPAN

    def close(self) -> None:
        """Do nothing."""


class OpenTelemetry:
    """Makes spans of OpenTelemetry.

    Args:
        provider: Where they go.
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
        """Open the span of a request, which is the root of a trace of its own."""
        opened = self._tracer.start_as_current_span(
            "http.request",
            context=self._nowhere,  # Whoever asks is not believed.
            kind=self._server,
            links=_links(parent),
            record_exception=False,  # Its message may be about rows.
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
        """Send what was not sent yet, and end the provider."""
        self._provider.shutdown()


class _Span:
    """A span of OpenTelemetry.

    Args:
        span: The span.
    """

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add what is known by now."""
        for name, value in attributes.items():
            self._span.set_attribute(name, value)


@contextmanager
def _failing(span: Span) -> Iterator[None]:
    """Note the type of what is raised, and nothing that it says."""
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


def traces_to(endpoint: str | None, version: str) -> Traces:
    """Return what sends traces to a collector.

    Args:
        endpoint: The URL that takes OTLP over HTTP, such as
            `http://localhost:4318/v1/traces`; None to record nothing.
        version: The version of modicum.
    """
    if not endpoint:
        return NoTraces()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({"service.name": "modicum", "service.version": version}),
        shutdown_on_exit=False,  # The server ends it.
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return OpenTelemetry(provider)

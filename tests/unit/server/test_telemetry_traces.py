"""Traces: where the time of a request goes, linked to whoever says that they asked."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, get_current_span, get_tracer_provider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from samples.served import HEADER, Served, served
from samples.small import POLICY, counts

from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.traces import (
    NoTraces,
    OpenTelemetry,
    trace_parent,
    traces_to,
)

ROOT = Path(__file__).parents[3]


@contextmanager
def recorded() -> Iterator[tuple[TelemetryContext, InMemorySpanExporter]]:
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    yield TelemetryContext(traces=OpenTelemetry(provider)), spans
    provider.shutdown()


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[tuple[Served, InMemorySpanExporter]]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    with (
        recorded() as (watch, spans),
        served(tmp_path / "ledger.db", policy=policy, watch=watch) as server,
    ):
        yield server, spans


def release(name: str, rho: float = 0.001) -> dict[str, Any]:
    return counts(name, rho=rho, dataset="visits")


def finished(
    server: Served, spans: InMemorySpanExporter
) -> dict[str, list[ReadableSpan]]:
    """Return the spans by name; a root ends after the answer, before the next one's."""
    server.client.close()
    found: dict[str, list[ReadableSpan]] = {}
    for _ in range(6000):
        done = spans.get_finished_spans()
        if any(one.name == "http.request" for one in done):
            break
        time.sleep(0.01)
    for one in spans.get_finished_spans():
        found.setdefault(one.name, []).append(one)
    return found


def parents(found: dict[str, list[ReadableSpan]]) -> dict[str, str]:
    """Return the name of the parent of each span, by its own name."""
    names = {
        one.context.span_id: name
        for name, some in found.items()
        for one in some
        if one.context is not None
    }
    return {
        name: names[one.parent.span_id]
        for name, some in found.items()
        for one in some
        if one.parent is not None
    }


def test_a_submission_is_traced_to_its_entry(
    traced: tuple[Served, InMemorySpanExporter],
) -> None:
    server, spans = traced
    answered = server.post("ann", "/releases", release("one"))
    found = finished(server, spans)
    assert parents(found) == {
        "release.submit": "http.request",
        "ledger.decide": "release.submit",
        "ledger.append": "release.submit",
    }
    (root,) = found["http.request"]
    assert root.kind is SpanKind.SERVER
    assert root.parent is None
    assert root.attributes is not None
    assert dict(root.attributes) == {
        "http.route": "/api/v1/releases",
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.request.body.size": len(answered.request.content),
        "http.response.body.size": len(answered.content),
    }
    (submitted,) = found["release.submit"]
    document = answered.json()
    assert submitted.attributes is not None
    assert dict(submitted.attributes) == {
        "modicum.decision": "allow",
        "modicum.entry": document["ledger"]["seq"],
        "modicum.policy": document["policy"]["digest"][:12],
        "modicum.rules.denying": 0,
    }
    assert root.context is not None
    assert answered.headers["x-request-id"] == f"{root.context.trace_id:032x}"


def test_a_check_that_fails_says_what_kind_of_mistake(
    traced: tuple[Served, InMemorySpanExporter],
) -> None:
    server, spans = traced
    server.post("ann", "/releases:check", {"release": "x", "dataset": "visits"})
    (checked,) = finished(server, spans)["release.check"]
    assert dict(checked.attributes or {}) == {"error.type": "InputError"}
    assert not checked.events
    assert checked.status.description is None


def test_who_asks_is_linked_and_not_believed(
    traced: tuple[Served, InMemorySpanExporter],
) -> None:
    server, spans = traced
    parent = f"00-{'ab' * 16}-{'cd' * 8}-00"
    headers = {HEADER: "ann", "traceparent": parent, "baggage": "a=b"}
    server.client.get("/api/v1/rules", headers=headers)
    (root,) = finished(server, spans)["http.request"]
    assert root.context is not None
    assert f"{root.context.trace_id:032x}" != "ab" * 16
    (link,) = root.links
    assert f"{link.context.trace_id:032x}" == "ab" * 16
    assert f"{link.context.span_id:016x}" == "cd" * 8
    assert link.context.is_remote


def oracle(value: str) -> tuple[int, int, bool] | None:
    """Return what OpenTelemetry's own propagator reads."""
    context = TraceContextTextMapPropagator().extract({"traceparent": value})
    found = get_current_span(context).get_span_context()
    if not found.is_valid:
        return None
    return found.trace_id, found.span_id, bool(found.trace_flags & 1)


hexes = st.sampled_from("0123456789abcdef")


def digits(count: int) -> st.SearchStrategy[str]:
    return st.one_of(
        st.just("0" * count), st.text(hexes, min_size=count, max_size=count)
    )


headers = st.builds(
    lambda version, trace, span, flags, more: f"{version}-{trace}-{span}-{flags}{more}",
    st.one_of(st.sampled_from(["00", "01", "ff"]), digits(2)),
    digits(32),
    digits(16),
    digits(2),
    st.sampled_from(["", "-", "-more", "x"]),
)


@given(headers)
@example("00-" + "a" * 32 + "-" + "b" * 16 + "-01")
@example("00-" + "a" * 32 + "-" + "b" * 16 + "-01-more")
@example("ff-" + "a" * 32 + "-" + "b" * 16 + "-01")
@example("cc-" + "a" * 32 + "-" + "b" * 16 + "-01-more")
def test_a_parent_is_read_as_opentelemetry_reads_it(value: str) -> None:
    found = trace_parent([(b"traceparent", value.encode())])
    parsed = None if found is None else (found.trace, found.span, found.is_sampled)
    assert parsed == oracle(value)


@given(st.binary(max_size=80))
def test_nonsense_is_no_parent(value: bytes) -> None:
    found = trace_parent([(b"traceparent", value)])
    form = rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
    assert found is None or re.fullmatch(form, value, re.DOTALL)


def test_two_parents_are_none() -> None:
    one = (b"traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")
    assert trace_parent([one]) is not None
    assert trace_parent([one, one]) is None
    assert trace_parent([]) is None


def test_nothing_is_traced_or_loaded_unless_somebody_says_where_to() -> None:
    code = (
        "import sys\n"
        "from modicum.server.telemetry.context import TelemetryContext\n"
        "from modicum.server.telemetry.traces import traces_to\n"
        "with traces_to(None, '1').request(None) as (trace, _):\n"
        "    assert len(trace) == 32 and int(trace, 16)\n"
        "assert not [n for n in sys.modules if n.startswith('opentelemetry.sdk')]\n"
        "assert not [n for n in sys.modules if 'exporter' in n]\n"
    )
    path = str(ROOT / "src")
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={"PYTHONPATH": path},
        capture_output=True,
    )
    assert found.returncode == 0, found.stderr.decode()
    assert isinstance(traces_to("", "1"), NoTraces)


def test_a_provider_is_set_for_nobody_else() -> None:
    before = get_tracer_provider()
    traces = traces_to("http://127.0.0.1:9/v1/traces", "1")
    assert isinstance(traces, OpenTelemetry)
    assert get_tracer_provider() is before
    traces.close()


class Collector(BaseHTTPRequestHandler):
    """Keeps what is sent to it."""

    sent: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.sent.append((self.path, self.rfile.read(size)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("ledger", ["", "health"])
def test_spans_are_sent_where_settings_say(ledger: str) -> None:
    Collector.sent.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        traces = traces_to(
            f"http://127.0.0.1:{collector.server_port}/v1/traces", "1.2.3", ledger
        )
        with traces.request(None) as (trace, span):
            span.note({"http.route": "/api/v1/rules"})
        traces.close()
        collector.shutdown()
    ((path, body),) = Collector.sent
    sent = ExportTraceServiceRequest.FromString(gzip_or_plain(body))
    (resource,) = sent.resource_spans
    named = {one.key: one.value.string_value for one in resource.resource.attributes}
    of_ledger = {"modicum.ledger": ledger} if ledger else {}
    assert named == {"service.name": "modicum", "service.version": "1.2.3"} | of_ledger
    ((found,),) = [scope.spans for scope in resource.scope_spans]
    assert path == "/v1/traces"
    assert found.trace_id.hex() == trace
    assert (found.name, len(found.attributes)) == ("http.request", 1)


def gzip_or_plain(body: bytes) -> bytes:
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body

"""A fuzzer that knows its way: what answers told is asked about again.

Calls are generated from the OpenAPI description, by Schemathesis; a part of each is
then replaced by what makes sense just then, so that calls also succeed. A new route
needs nothing here, but a story in `STORIES` where generated calls hardly ever succeed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode, openapi
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation as At
from starlette.requests import Request

from modicum.api.permissions.identity import Grants, Identity
from samples.heard import Heard
from samples.told import PREFIX, Told

#: A token of the organization that is fuzzed names who asks.
_BEARER: Final = "Bearer "
#: A long text in YAML takes its time.
_PATIENCE_SECONDS: Final = 120
#: A connection that waited so long is not used again; the server closes it after 30.
_IDLE_SECONDS: Final = 10
#: Parameters of paths that take values with slashes in them.
_WITH_SLASHES: Final = frozenset({"release", "round_id", "rule"})
#: For each call that the description suggests and is made, so many are looked at.
_LOOKED_AT: Final = 10
#: What is told as it happens.
_STREAM: Final = "text/event-stream"
#: What is looked at; what needs a whole story is left to the other tests.
_CHECKS: Final = frozenset(
    {
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
        "missing_required_header",
        "unsupported_method",
        "ignored_auth",
    }
)
#: A mistake that is told before the parameters are looked at is as good.
_CONFIG: Final[dict[str, Any]] = {
    "checks": {
        name: {
            "expected-statuses": [
                *(400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428)
            ]
        }
        for name in ("negative_data_rejection", "missing_required_header")
    }
}


class ByBearer:
    """Believes that a token is what it says.

    Args:
        people: Who there is.
    """

    def __init__(self, people: Mapping[str, Grants]) -> None:
        self._people = people

    async def identify(self, request: Request) -> Identity | None:
        """Return whom the token names."""
        name = request.headers.get("Authorization", "").removeprefix(_BEARER)
        if name not in self._people:
            return None
        return Identity(name, self._people[name], via="a token")


@dataclass(frozen=True, slots=True)
class Filled:
    """What a call needs in order to succeed.

    Attributes:
        body: The body; None for none.
        media_type: Its type.
        path: Parameters in the path.
        query: Parameters after it.
        headers: Headers.
        who: Who may do it; empty for anybody.
    """

    body: Any = None
    media_type: str = "application/json"
    path: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    who: str = ""


#: Brings about what a call needs; by the operation, or the component of its body.
#: None if that cannot be had just then.
Stories = Mapping[str, Callable[[random.Random, Told], Filled | None]]


class Fuzzer:
    """Calls every operation of a server, and keeps what it heard.

    Args:
        url: Where the server is.
        who: Who asks, each as often as they stand here.
        stories: As for `Stories`.
        received: Takes what was answered.

    Attributes:
        told: What answers told.
    """

    def __init__(
        self, url: str, who: tuple[str, ...], stories: Stories, received: Heard
    ) -> None:
        load_all_checks()
        config = SchemathesisConfig.from_dict(_CONFIG)
        self._description = requests.get(
            f"{url}{PREFIX}/openapi.json", timeout=60
        ).json()
        self.schema = openapi.from_dict(deepcopy(self._description), config=config)
        self._heard = received
        self.told = Told()
        self._url = url
        self._who = who
        self._stories = stories
        self._session = requests.Session()
        self._session.trust_env = False
        self._last = time.monotonic()
        self._keys = count()
        self._probed: set[str] = set()
        self._checks: dict[str, Any] = {
            one.__name__: one for one in CHECKS.get_all() if one.__name__ in _CHECKS
        }
        if self._checks.keys() != _CHECKS:
            raise LookupError(_CHECKS - self._checks.keys())

    def cases(self, most: int, start: int) -> list[Case[Any]]:
        """Return generated calls of every operation, about as many of each.

        Two fifths are what the description suggests, bounds above all; as many are
        drawn and well formed, so far as the description tells; the others are not.
        Where a story fills the most of what is drawn well, and to draw whole releases
        takes its time, half is what the description suggests, and each call that is
        drawn well is made three times: filled, aimed or neither, as it falls.
        """
        every: Any = self.schema.get_all_operations()
        operations = [one.ok() for one in every]
        operations = [one for one in operations if not self._has_no_end(one.label)]
        # Those with a body come last: there is always another one to make up for
        # operations that can be called in few ways.
        operations.sort(key=lambda one: len(one.body) > 0)
        found: list[Case[Any]] = []
        for number, operation in enumerate(operations):
            left = -(-(most - len(found)) // (len(operations) - number))
            is_told = bool(operation.body and self._known(operation.label))
            own = _covering(operation, left // 2 if is_told else 2 * left // 5, start)
            left -= len(own)
            positive = 4 * left // 5 if is_told else 2 * left // 3
            times = 3 if is_told else 1
            for mode, wanted, each in (
                (GenerationMode.POSITIVE, positive, times),
                (GenerationMode.NEGATIVE, left - positive, 1),
            ):
                drawn = _drawn(operation, mode, -(-wanted // each), start + number)
                own += [_copied(one) for one in drawn for _ in range(each)][:wanted]
            found += own
        random.Random(start).shuffle(found)
        return found

    def run(self, cases: Sequence[Case[Any]], start: int) -> None:
        """Make each call, with a part of it replaced by what makes sense just then."""
        rng = random.Random(start)
        for case in cases:
            is_valid = not _is_negative_anywhere(case)  # It is not told so afterwards.
            filled = self._make_plausible(case, rng)
            for name, value in [*case.path_parameters.items()]:
                # With these it would be another address: clients resolve dots, and an
                # empty id leaves none. A long id is as wrong as an empty one.
                if value in {"", ".", ".."}:
                    case.path_parameters[name] = "-" if value else "x" * 500
            for name, value in [*case.query.items()]:
                # A wrong null would be sent as the text "null", which may be right.
                if value is None and not is_valid:
                    del case.query[name]
                    case.query[f"no-{name}"] = "null"
            who = filled.who if filled is not None else ""
            is_filled = filled is not None and is_valid
            self._call(case, who or rng.choice(self._who), is_filled=is_filled)

    def get(self, who: str, path: str) -> None:
        """Look at something, as people do before they act; it is not counted."""
        self._connect_anew_if_idle()
        answered = self._session.get(
            f"{self._url}{PREFIX}{path}", headers={"Authorization": _BEARER + who}
        )
        self._hear(answered)

    def _connect_anew_if_idle(self) -> None:
        """Close a connection that waited: the server may do so just when it is used."""
        now = time.monotonic()
        if now - self._last > _IDLE_SECONDS:
            self._session.close()
        self._last = now

    def _has_no_end(self, label: str) -> bool:
        """Return whether an operation answers with a stream: it is not waited for."""
        return any(
            _STREAM in answer.get("content", {})
            for answer in self._described(label)["responses"].values()
        )

    def _described(self, label: str) -> dict[str, Any]:
        method, _, path = label.partition(" ")
        found: dict[str, Any] = self._description["paths"][path][method.lower()]
        return found

    def _known(self, label: str) -> str | None:
        """Return which story tells how to do it, by its name or that of its body."""
        content = self._described(label).get("requestBody", {}).get("content", {})
        components = {
            one["schema"].get("$ref", "").rsplit("/", 1)[-1] for one in content.values()
        }
        known = (one for one in (label, *components) if one in self._stories)
        return next(known, None)

    # --- one call -------------------------------------------------------------------

    def _make_plausible(self, case: Case[Any], rng: random.Random) -> Filled | None:
        """Replace a part of a call by what makes sense, where it is to be valid.

        Returns:
            What a story told; None if none did.
        """
        # What is replaced is judged anew by Schemathesis: that is not asked.
        negative = {one for one in At if _is_negative(case, one)}
        if rng.random() < 0.9:
            self._aim(case, negative, rng)
        if At.QUERY not in negative:
            for name in list(case.query):
                value = self.told.value(case.path, name, rng)
                if value is not None and rng.random() < 0.7:
                    case.query[name] = value
        if At.BODY in negative or rng.random() > 0.7:
            return None
        return self._fill(case, negative, rng)

    def _aim(self, case: Case[Any], negative: Set[At], rng: random.Random) -> None:
        """Call for what is there, with headers that go by it."""
        if At.PATH not in negative:
            for name in list(case.path_parameters):
                value = self.told.value(case.path, name, rng)
                fits = name in _WITH_SLASHES or "/" not in str(value)
                if value is not None and fits:
                    case.path_parameters[name] = value
        if At.HEADER in negative:
            return
        if "Idempotency-Key" in case.headers and rng.random() < 0.95:
            case.headers["Idempotency-Key"] = f"call-{next(self._keys)}"
        tag = self.told.tag(case.formatted_path, rng)
        if "If-Match" in case.headers and tag is not None:
            case.headers["If-Match"] = tag

    def _fill(
        self, case: Case[Any], negative: Set[At], rng: random.Random
    ) -> Filled | None:
        """Send what succeeds, if a story tells how."""
        label = case.operation.label
        known = self._known(label)
        found = self._stories[known](rng, self.told) if known else None
        if found is None:
            return None
        if "requestBody" in self._described(label):
            case.body, case.media_type = found.body, found.media_type
        for at, own, those in (
            (At.PATH, case.path_parameters, found.path),
            (At.QUERY, case.query, found.query),
            (At.HEADER, case.headers, found.headers),
        ):
            if at not in negative:
                if those and at is At.QUERY:
                    own.clear()  # A story is told whole.
                own.update(those)
        return found

    def _call(self, case: Case[Any], name: str, *, is_filled: bool) -> None:
        label = case.operation.label
        who = {"Authorization": _BEARER + name}
        data = case.meta.phase.data if case.meta else None
        if getattr(data, "parameter", None) == "Authorization":
            who = {}  # It is about calls without a token, or with a wrong one.
        # Else a token that was left out, and is sent, would be taken for missing.
        case.headers.update(who)
        self._connect_anew_if_idle()
        response = case.call(
            base_url=self._url,
            session=self._session,
            headers=who,
            timeout=_PATIENCE_SECONDS,
        )
        self._heard.statuses[label][response.status_code] += 1
        self._hear(response)
        without: set[Any] = set()
        # The text of a file is no document to Schemathesis, and one text no list.
        if is_filled or self._sends_one_for_a_list(case):
            without.add(self._checks["negative_data_rejection"])
        if label in self._probed:
            without.add(self._checks["ignored_auth"])
        elif response.status_code < 300:
            self._probed.add(label)
        try:
            case.validate_response(
                response,
                checks=list(self._checks.values()),
                excluded_checks=list(without),
                headers=who,
                transport_kwargs={
                    "base_url": self._url,
                    "session": self._session,
                    "headers": who,
                    "timeout": _PATIENCE_SECONDS,
                },
            )
        except FailureGroup as found:
            for one in found.exceptions:
                kind = (label, f"{type(one).__name__} {one._unique_key}"[:200])
                self._heard.failures.setdefault(kind, str(found))

    def _sends_one_for_a_list(self, case: Case[Any]) -> bool:
        """Return whether all that is wrong is one text for a list in the address.

        A list of one is sent alike.
        """
        if {one for one in At if _is_negative(case, one)} != {At.QUERY}:
            return False
        lists = {
            one["name"]
            for one in self._described(case.operation.label).get("parameters", ())
            if one["in"] == "query" and one["schema"].get("type") == "array"
        }
        return lists.issuperset(case.query) and all(
            isinstance(value, str | int | float) for value in case.query.values()
        )

    def _hear(self, response: Any) -> None:
        if not 200 <= response.status_code < 300:
            return
        tags = response.headers.get("etag")
        tag = tags[0] if isinstance(tags, list) else tags
        path = unquote(urlsplit(str(response.request.url)).path)
        kinds = response.headers.get("content-type") or [""]
        kind = kinds[0] if isinstance(kinds, list) else kinds
        answer = response.json() if kind == "application/json" else None
        self.told.hear(path, answer, tag, str(response.request.method))


def _is_negative(case: Case[Any], at: At) -> bool:
    return case.meta is not None and case.meta.is_negative_at(at)


def _is_negative_anywhere(case: Case[Any]) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_negative


def _covering(operation: Any, most: int, start: int) -> list[Case[Any]]:
    """Return some of the calls that the description suggests."""
    schema = operation.schema
    every = schema.iter_coverage_cases(
        operation,
        generation_modes=list(GenerationMode),
        generation_config=schema.config.generation,
    )
    # A description of many fields suggests thousands; to make them takes its time.
    found = list(islice(every, _LOOKED_AT * most))
    return random.Random(start).sample(found, min(most, len(found)))


def _drawn(
    operation: Any, mode: GenerationMode, times: int, start: int
) -> list[Case[Any]]:
    """Return calls that are drawn at random."""
    found: list[Case[Any]] = []

    @seed(start)
    @settings(
        max_examples=times,
        phases=[Phase.generate],
        database=None,
        derandomize=False,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def draw(case: Case[Any]) -> None:
        found.append(case)

    draw()
    return found


def _copied(case: Case[Any]) -> Case[Any]:
    """Return another call of the same; what is done to it is not done to the first."""
    copied = case.derive()
    copied._meta = deepcopy(case._meta)
    return copied

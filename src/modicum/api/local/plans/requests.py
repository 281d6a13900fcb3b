"""Requests for a round: releases as they were handed in, each with its worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction

from msgspec.structs import replace

from modicum.api.local.evaluation import price_release
from modicum.core.diagnostics import fail
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.ledger import RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.document.canonical_form import formatted
from modicum.release.utility import (
    UTILITY,
    UTILITY_USUAL,
    read_utility,
    stated_utility,
)

#: More requests in one batch are refused.
REQUESTS_MAX = 100_000
#: Maximum number of mistakes of a batch shown; reading stops then.
MISTAKES_MAX = 100


@dataclass(frozen=True, slots=True)
class Request:
    """A release in a planning batch.

    Attributes:
        release: The release, priced, as the ledger would keep it.
        utility: Its utility, at least 0.
        source: Its source, as text: a file and a line or row.
        tree: Returns the original input; the parsed form need not be kept.
    """

    release: RecordedRelease
    utility: Fraction
    source: str
    tree: Callable[[], Node] = field(repr=False, compare=False)

    @property
    def names_groups(self) -> bool:
        """Whether each of its mechanisms names the user groups that it reads."""
        return all(one.part.groups is not None for one in self.release.mechanisms)

    def text(self) -> str:
        """Return the release as in a file."""
        return formatted(self.tree()).lstrip("\n")


@dataclass(frozen=True, slots=True)
class Handed:
    """A request before parsing.

    Attributes:
        source: Its source, as text.
        mark: The same as a place; mistakes that know none better are put there.
        tree: Returns it as a tree that knows its places.
        plain: The same as plain data, if these are quicker to have.
        utility: Its utility, given beside the release.
    """

    source: str
    mark: Mark | None
    tree: Callable[[], Node]
    plain: Mapping[str, object] | None = None
    utility: Node | None = None


def read_request(handed: Handed, compiled: CompiledPolicy) -> Request:
    """Return a request, read and priced under a policy, whose guards look at it."""
    if handed.plain is not None:
        with suppress(InputError):  # Reported below, with positions.
            return _request(handed, handed.plain, compiled)
    try:
        return _request(handed, handed.tree(), compiled)
    except InputError as error:
        raise InputError(*(_placed(one, handed.mark) for one in error.problems)) from (
            error
        )


def _request(
    handed: Handed, fields: Mapping[str, object] | Node, compiled: CompiledPolicy
) -> Request:
    recorded = price_release(fields, compiled)
    stated = stated_utility(fields, compiled.policy.vocabulary)
    if stated is not None and handed.utility is not None:
        raise fail(
            Code.KEYS_CONFLICT,
            f"`{UTILITY}` is given both in the release and next to it",
            stated,
            help="remove one of them",
        )
    node = stated or handed.utility
    utility = UTILITY_USUAL if node is None else read_utility(node)
    return Request(recorded, utility, handed.source, handed.tree)


def _placed(problem: Problem, mark: Mark | None) -> Problem:
    return problem if problem.mark is not None else replace(problem, mark=mark)


class Batch:
    """Collects the requests of a round, in their order, and all their mistakes.

    Args:
        compiled: The policy that they are read and priced under.
    """

    def __init__(self, compiled: CompiledPolicy) -> None:
        self._compiled = compiled
        self._requests: list[Request] = []
        self._sources: dict[str, str] = {}
        self._mistakes: list[Problem] = []
        self._ended = False

    def add(self, handed: Handed) -> None:
        """Read a request and keep it, or its mistakes."""
        if len(self._requests) >= REQUESTS_MAX:
            self._ended = True
            raise self._no_more(handed.mark)
        with self.guard():
            request = read_request(handed, self._compiled)
            self._refuse_second(request, handed)
            self._requests.append(request)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Note an `InputError` raised inside, and go on after the block."""
        try:
            yield
        except InputError as error:
            if self._ended:  # The exception of an inner block is propagating.
                raise
            self._mistakes.extend(error.problems)
            if self._full:
                self._ended = True
                raise self._noted() from error

    def finished(self, what: str) -> tuple[Request, ...]:
        """Return the requests."""
        if self._mistakes:
            raise self._noted()
        if not self._requests:
            raise fail(
                Code.EMPTY_DOCUMENT,
                f"there is no request in {what}",
                help="give at least one release",
            )
        return tuple(self._requests)

    @property
    def _full(self) -> bool:
        return len(self._mistakes) >= MISTAKES_MAX

    def _noted(self) -> InputError:
        shown = self._mistakes[:MISTAKES_MAX]
        if self._full:
            note = f"reading stopped after {MISTAKES_MAX} errors; there may be more"
            shown[-1] = replace(shown[-1], notes=(*shown[-1].notes, note))
        return InputError(*shown)

    def _refuse_second(self, request: Request, handed: Handed) -> None:
        """Refuse a request of an id that another one has; remember its own."""
        own = request.release.id
        first = self._sources.get(own)
        if first is not None:
            raise InputError(
                Problem(
                    Code.DUPLICATE_NAME,
                    f"two requests are named `{own}`: {first} and {request.source}",
                    handed.mark,
                    help="give each a different id, or leave one out",
                )
            )
        self._sources[own] = request.source

    def _no_more(self, mark: Mark | None) -> InputError:
        """Return the error for one request too many; earlier mistakes come first."""
        if self._mistakes:
            return self._noted()
        problem = Problem(
            Code.TOO_LARGE,
            f"a batch has at most {REQUESTS_MAX} requests",
            mark,
            help="plan fewer at a time",
        )
        return InputError(problem)

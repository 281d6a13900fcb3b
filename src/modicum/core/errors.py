"""Mistakes, as exceptions that carry a stable code, a place and a remedy.

A *refusal* (a release that a policy denies) is a value and never appears here.
"""

from __future__ import annotations

from enum import Enum
from typing import Self

from msgspec import Struct
from msgspec.structs import replace


class Code(Enum):
    """Every code a user can meet. The reference page lists each with its remedy."""

    # Reading a file
    FILE_UNREADABLE = "MOD001"
    NOT_TEXT = "MOD002"
    YAML_SYNTAX = "MOD003"
    DUPLICATE_KEY = "MOD004"
    TOO_LARGE = "MOD005"
    YAML_FEATURE = "MOD006"
    EMPTY_DOCUMENT = "MOD007"
    INCLUDE = "MOD010"
    # Structure and names
    NO_CATCH_ALL = "MOD101"
    UNKNOWN_KEY = "MOD102"
    MISSING_KEY = "MOD103"
    WRONG_TYPE = "MOD104"
    NOT_A_NUMBER = "MOD105"
    OUT_OF_RANGE = "MOD106"
    BAD_NAME = "MOD107"
    NOT_SUPPORTED = "MOD108"
    UNKNOWN_VERSION = "MOD109"
    NO_MEASURE = "MOD110"
    UNKNOWN_UNIT = "MOD111"
    UNKNOWN_LABEL_VALUE = "MOD112"
    UNKNOWN_CATEGORY = "MOD113"
    UNKNOWN_RISK_LEVEL = "MOD114"
    UNKNOWN_CHOICE = "MOD115"
    DUPLICATE_NAME = "MOD116"
    UNKNOWN_ATTRIBUTE = "MOD117"
    UNKNOWN_MECHANISM = "MOD118"
    KEYS_CONFLICT = "MOD119"
    UNIT_CYCLE = "MOD120"
    # Claims that are checked
    FALSE_WITHIN = "MOD204"
    FALSE_UNIT_ORDER = "MOD205"
    LOOSE_DEFAULT = "MOD206"
    NEVER_TRUE = "MOD207"
    # Predicates
    CEL_SYNTAX = "MOD301"
    CEL_TYPE = "MOD302"
    CEL_SUBSET = "MOD303"
    CEL_LIMIT = "MOD304"
    # Budgets and their maps
    NO_BUDGET = "MOD401"
    MAP_UNDEFINED = "MOD402"
    MAP_NOT_MONOTONE = "MOD403"
    MAP_MEASURE = "MOD404"
    NOTHING_FITS = "MOD405"
    # Costs
    COST_MISSING = "MOD501"
    COST_TOO_LOW = "MOD502"
    COST_NOT_DERIVABLE = "MOD503"
    GUARDED = "MOD504"
    NO_CLAIM = "MOD505"
    # The life of a policy
    POLICY_CONFLICT = "MOD601"
    POLICY_STALE = "MOD602"
    NO_POLICY = "MOD603"
    NEEDS_APPROVAL = "MOD604"
    WOULD_BE_DENIED = "MOD605"
    REVIEW_AGAIN = "MOD606"
    NOT_SIGNED = "MOD607"
    UNIT_REDEFINED = "MOD608"
    ATTRIBUTE_DROPPED = "MOD609"
    NOT_CORRECTABLE = "MOD610"
    CORRECTS_MORE = "MOD611"
    RELEASES_DEPARTED = "MOD612"
    FILTER_CHANGED = "MOD613"
    # The ledger
    LEDGER_MISSING = "MOD701"
    LEDGER_BROKEN = "MOD702"
    RELEASE_CONFLICT = "MOD703"
    RELEASE_UNKNOWN = "MOD704"
    RELEASE_STATE = "MOD705"
    LEDGER_BUSY = "MOD706"
    NOT_A_LEDGER = "MOD707"
    ALREADY_EXISTS = "MOD708"
    LEDGER_UNWRITABLE = "MOD709"
    CLOCK_JUMPED = "MOD710"
    LEDGER_BEHIND = "MOD711"
    NOT_WITNESSED = "MOD712"
    TRAIL_BROKEN = "MOD713"
    TRAIL_UNWRITTEN = "MOD714"
    GAP_OPEN = "MOD715"
    # Rounds and plans
    ROUND_MISSING = "MOD801"
    PLAN_STALE = "MOD802"
    PLAN_REFUSED = "MOD803"
    PLAN_UNKNOWN = "MOD804"
    # Queries
    NOT_SQL = "MOD811"
    NOT_IN_SUBSET = "MOD812"
    NOT_BOUNDED = "MOD813"
    UNKNOWN_NAME = "MOD814"
    DOES_NOT_FIT = "MOD815"
    ENGINE_FAILED = "MOD816"
    DATA_NOT_AS_DECLARED = "MOD817"
    # The service
    NOT_RECOGNIZED = "MOD831"
    FORBIDDEN = "MOD832"
    DUTIES_JOINED = "MOD833"
    PRECONDITION_MISSING = "MOD834"
    KEY_REUSED = "MOD835"
    PRECONDITION_FAILED = "MOD836"
    TOO_MANY_REQUESTS = "MOD837"
    NOT_FOUND = "MOD838"
    NOT_ACCEPTED = "MOD839"
    BAD_REQUEST = "MOD840"
    PROVIDER_FAILED = "MOD841"
    NO_ANSWER = "MOD842"
    NOT_UNDERSTOOD = "MOD843"
    BAD_ADDRESS = "MOD844"
    JOB_ELSEWHERE = "MOD845"
    NOT_SET_UP = "MOD846"
    HELD_TOO_MUCH = "MOD847"
    SPLIT_TOO_FAR = "MOD848"
    # The escrow
    SEALED_BROKEN = "MOD850"
    KEY_DESTROYED = "MOD851"
    KEY_UNAVAILABLE = "MOD852"
    SEALED_BEFORE = "MOD853"
    VAULT_UNUSABLE = "MOD854"
    SANDBOX_MISSING = "MOD855"
    SANDBOX_LEAKS = "MOD856"
    EVIDENCE_REFUSED = "MOD857"
    TASK_MISMATCH = "MOD860"
    NOT_A_PROGRAM = "MOD861"
    NOT_THE_CATALOGUE = "MOD862"
    NOT_PERMITTED = "MOD865"
    CONTRACT_UNKNOWN = "MOD866"
    CONTRACT_REFUSED = "MOD867"
    DATA_SET_UNKNOWN = "MOD868"
    # We are wrong
    INTERNAL = "MOD900"


class Mark(Struct, frozen=True, gc=False):
    """A place in a text: 1-based line and column, and the line itself.

    Attributes:
        file: The name the user knows the text by.
        line: Line number, from 1.
        column: Column number in characters, from 1.
        length: The number of characters to underline, at least 1.
        source: The text of that line, without its line break.
    """

    file: str
    line: int
    column: int
    length: int = 1
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(Struct, frozen=True):
    """One mistake: what is wrong, where, why it matters, and the remedy.

    Attributes:
        code: The stable code.
        message: Subject, rule and offending value, in one line.
        mark: Its position in a file; None when no file is involved.
        label: A short remark printed beside the caret.
        notes: Reasons, one line each.
        help: The remedy, in one line; empty if the message suffices.
        places: The parts of these texts that show where the ledger is: its path, its
            URL, messages of a driver. A server sends none of them.
    """

    code: Code
    message: str
    mark: Mark | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    help: str = ""
    places: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the message as a compiler would print it, with a caret."""
        lines = [f"error[{self.code.value}]: {self.message}"]
        if self.mark is not None:
            lines.append(f"  --> {self.mark}")
            if self.mark.source:
                lines.extend(_excerpt(self.mark, self.label))
        if self.label and (self.mark is None or not self.mark.source):
            lines.append(f"   = {self.label}")
        lines.extend(f"   = {note}" for note in self.notes)
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(printable(line) for line in lines)


def printable(line: str) -> str:
    """Return a line with terminal control characters escaped."""
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in line
    )


_EXCERPT_WIDTH = 120  # A longer source line is cut around the caret.


def _excerpt(mark: Mark, label: str) -> list[str]:
    number = str(mark.line)
    gutter = " " * len(number)
    cut = 0
    if len(mark.source) > _EXCERPT_WIDTH:
        cut = max(0, mark.column - 1 - _EXCERPT_WIDTH // 2)
    source = mark.source.expandtabs(1)[cut : cut + _EXCERPT_WIDTH]
    offset = mark.column - 1 - cut
    carets = "^" * max(1, min(mark.length, len(source) - offset))
    return [
        f" {gutter} |",
        f" {number} | {source}",
        f" {gutter} | {' ' * offset}{carets}{' ' + label if label else ''}",
    ]


_SHOWN_MAX = 50  # Maximum number of distinct mistakes shown.
_PLACES_MAX = 5  # Further places of the same mistake that are named.


def _rendered(first: Problem, *again: Problem) -> str:
    """Return a problem as text, with the other positions where it was found."""
    if not again:
        return first.render()
    marks = [one.mark for one in again[:_PLACES_MAX]]
    places = [f"{mark.file}:{mark.line}" for mark in marks if mark is not None]
    more = len(again) - len(places)
    also = f"; also at {', '.join(places)}" if places else ""
    also += f" and {more} more; --json has them all" if places and more else ""
    found = printable(f"   = found {1 + len(again)} times{also}")
    return f"{first.render()}\n{found}"


class ModicumError(Exception):
    """Base of every error modicum reports; carries one or more problems.

    Attributes:
        problems: The problems, in the order found; never empty.
    """

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            message = "an error needs at least one problem"
            raise ValueError(message)
        self.problems = problems
        super().__init__("\n".join(dict.fromkeys(one.message for one in problems)))

    @property
    def code(self) -> Code:
        """The code of the first problem."""
        return self.problems[0].code

    def render(self) -> str:
        """Return the problems as a compiler would print them, equal ones once."""
        equal: dict[Problem, list[Problem]] = {}
        for problem in self.problems:
            equal.setdefault(replace(problem, mark=None), []).append(problem)
        shown = [_rendered(*group) for group in equal.values()]
        if len(shown) > _SHOWN_MAX:
            left = sum(map(len, list(equal.values())[_SHOWN_MAX:]))
            shown[_SHOWN_MAX:] = [f"… and {left} more errors; --json has them all"]
        return "\n\n".join(shown)

    def alone(self) -> Self:
        """Return this error, without its frames and causes.

        Their contents, such as rows and exact numbers, are then not disclosed.
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class InputError(ModicumError):
    """A policy, release or argument is malformed; nothing was changed."""


class ConflictError(ModicumError):
    """The same id is in use with other contents, or the status does not allow it."""


class UsageError(ModicumError):
    """The call names something that is not there, or may not be overwritten."""


class ApprovalError(ModicumError):
    """The release needs approval before it may be reserved."""


class AccessError(ModicumError):
    """The caller is not authenticated, or lacks permission."""


class StaleError(ModicumError):
    """The ledger has changed: another policy is active than the one given."""


class VerificationError(ModicumError):
    """The ledger's bytes contradict themselves; nothing is decided on them."""


class UnavailableError(ModicumError):
    """Something outside failed (lock, disk); the call may be retried."""


class InvariantError(ModicumError):
    """Modicum contradicts itself. A bug: stop rather than guess."""


def check(condition: bool, invariant: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Stop if an invariant does not hold; unlike `assert`, survives ``python -O``.

    Args:
        condition: The condition.
        invariant: Its name and wording, such as ``"LED-3: sums are exact"``.

    Raises:
        InvariantError: If `condition` is false.
    """
    if not condition:
        raise InvariantError(Problem(Code.INTERNAL, f"invariant violated: {invariant}"))

"""A plan: which requests of a round are to be reserved together, and why not others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from modicum.api.local.explanation.denial_text import (
    amount_text,
    locked_remedy,
    locked_text,
    unmatched_text,
)
from modicum.core.canonical import Plain, digest, encode
from modicum.core.diagnostics import shortened
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, number_text
from modicum.core.reader import (
    Fields,
    choice,
    count,
    fail,
    items,
    line,
    release_id,
    take_format,
    text,
)
from modicum.ledger import RuleLoss
from modicum.ledger.decision.amounts import amounts
from modicum.planner.ledger_round.denial_reasons import Obstacle, obstacles
from modicum.planner.ledger_round.plan import RoundPlan
from modicum.planner.ledger_round.presolve import LeftOut, Reason
from modicum.release.utility import exact_utility

FORMAT = "modicum-plan/1"
#: A longer description of one release is refused.
_TEXT_MAX = 4_000_000
_SEQ_MAX = 10**15


class Outcome(Enum):
    """The outcome of a request in a plan."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The outcome of one request.

    Attributes:
        release: The id of the release.
        content: SHA-256 of the release to reserve.
        utility: Its utility.
        outcome: The outcome; `LEFT_OUT` was not given to the solver.
        why: Why not, line by line; empty if it was accepted.
        text: The release as in a file; empty unless it was accepted.
    """

    release: str
    content: str
    utility: Fraction
    outcome: Outcome
    why: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan for one round, bound to a ledger entry.

    Attributes:
        round: The id of the round.
        policy: The digest of the policy.
        seq: The number of the ledger's last entry.
        head: The hash of that entry.
        solver: The solver.
        remark: Known bounds on better plans; empty if there are none.
        accepted: The ids of the releases that are accepted, in the order in which the
            ledger allows them one after the other.
        outcomes: The outcomes, in the order of the requests.
    """

    round: str
    policy: str
    seq: int
    head: str
    solver: str
    remark: str
    accepted: tuple[str, ...]
    outcomes: tuple[RequestOutcome, ...]

    @property
    def to_reserve(self) -> tuple[RequestOutcome, ...]:
        """The requests that are accepted, in the order in which they are reserved."""
        by_id = {one.release: one for one in self.outcomes}
        return tuple(by_id[release] for release in self.accepted)

    @property
    def by_outcome(self) -> Mapping[Outcome, tuple[RequestOutcome, ...]]:
        """The requests by outcome, each in their order."""
        return {
            outcome: tuple(one for one in self.outcomes if one.outcome is outcome)
            for outcome in Outcome
        }

    @property
    def utility(self) -> Fraction:
        """The total utility of the accepted requests."""
        return sum((one.utility for one in self.to_reserve), Fraction(0))

    @property
    def possible(self) -> Fraction:
        """The total utility of all requests."""
        return sum((one.utility for one in self.outcomes), Fraction(0))

    @property
    def content(self) -> str:
        """SHA-256 of the complete plan."""
        return digest(encode(self._plain()))

    @property
    def id(self) -> str:
        """Its id: `plan-` and the beginning of its content."""
        return f"plan-{self.content[:12]}"

    def why_not(self, release: str) -> tuple[str, ...]:
        """Return why a request was not accepted, line by line.

        Args:
            release: Its id.

        Returns:
            Nothing if it was accepted.

        Raises:
            InputError: If the plan knows no such request.
        """
        for one in self.outcomes:
            if one.release == release:
                return one.why
        raise InputError(
            Problem(
                Code.PLAN_UNKNOWN,
                f"the plan has no request `{release[:200]}`",
                help="list them with  modicum plan show PLAN",
            )
        )

    def to_dict(self) -> dict[str, Plain]:
        """Return the documented JSON form (docs/reference/plan-format.md)."""
        return {
            "format": FORMAT,
            "plan": self.id,
            "content": self.content,
            **self._plain(),
        }

    def _plain(self) -> dict[str, Plain]:
        return {
            "round": self.round,
            "policy": self.policy,
            "ledger": {"seq": self.seq, "head": self.head},
            "solver": self.solver,
            "remark": self.remark,
            "accepted": list(self.accepted),
            "utility": number_text(self.utility),
            "possible": number_text(self.possible),
            "requests": [_outcome_to_plain(one) for one in self.outcomes],
        }


def _outcome_to_plain(one: RequestOutcome) -> Plain:
    return {
        "release": one.release,
        "content": one.content,
        "utility": number_text(one.utility),
        "outcome": one.outcome.value,
        "why": list(one.why),
        "text": one.text,
    }


def read_plan(node: Node | Mapping[str, object]) -> Plan:
    """Return the plan in a file, unchanged."""
    tree = from_python(node) if isinstance(node, Mapping) else node
    fields = Fields(tree, "the plan")
    take_format(fields, FORMAT)
    identifier = line(fields.take("plan"), "`plan`")
    content = line(fields.take("content"), "`content`")
    ledger = Fields(fields.take("ledger"), "`ledger`")
    requests = items(fields.take("requests"), "`requests`")
    plan = Plan(
        round=release_id(fields.take("round"), "`round`"),
        policy=line(fields.take("policy"), "`policy`"),
        seq=count(ledger.take("seq"), "`seq`", at_least=0, at_most=_SEQ_MAX),
        head=line(ledger.take("head"), "`head`"),
        solver=line(fields.take("solver"), "`solver`"),
        remark=line(fields.take("remark"), "`remark`"),
        accepted=tuple(
            release_id(one, "an id of `accepted`")
            for one in items(fields.take("accepted"), "`accepted`")
        ),
        outcomes=tuple(_read_outcome(one) for one in requests),
    )
    _refuse_mismatch(plan, tree)
    for key in ("utility", "possible"):  # They follow from the requests.
        fields.take(key)
    for one in (fields, ledger):
        one.finish()
    if (plan.content, plan.id) != (content, identifier):
        raise _changed(tree)
    return plan


def _refuse_mismatch(plan: Plan, tree: Node) -> None:
    """Refuse a plan whose accepted list does not match its requests."""
    stated = [one.release for one in plan.outcomes if one.outcome is Outcome.ACCEPTED]
    ids = [one.release for one in plan.outcomes]
    if sorted(stated) != sorted(plan.accepted) or len(set(ids)) != len(ids):
        raise _changed(tree)


def _changed(tree: Node) -> ConflictError:
    return ConflictError(
        Problem(
            Code.PLAN_REFUSED,
            "the plan file was changed",
            tree.mark,
            help="make it again with  modicum plan run",
        )
    )


def _read_outcome(node: Node) -> RequestOutcome:
    fields = Fields(node, "a request of the plan")
    found = RequestOutcome(
        release=release_id(fields.take("release"), "`release`"),
        content=line(fields.take("content"), "`content`"),
        utility=_utility(fields.take("utility")),
        outcome=_outcome(fields.take("outcome")),
        why=tuple(
            text(one, "a line of `why`", characters_max=_TEXT_MAX)
            for one in items(fields.take("why"), "`why`")
        ),
        text=_text(fields.take("text")),
    )
    fields.finish()
    return found


def _utility(node: Node) -> Fraction:
    written = line(node, "`utility`")
    found = exact_utility(written)
    if found is None:
        message = f"`utility` must be an exact number as text, got `{written[:60]}`"
        raise fail(Code.NOT_A_NUMBER, message, node)
    return found


def _outcome(node: Node) -> Outcome:
    known = [one.value for one in Outcome]
    return Outcome(choice(node, "outcome", known, Code.UNKNOWN_CHOICE))


def _text(node: Node) -> str:
    return text(node, "`text`", characters_max=_TEXT_MAX)


#: Maximum number of obstacles, and of rivals of each, that are listed.
_OBSTACLES = 3
_RIVALS = 5


def left_out_lines(one: LeftOut) -> Iterator[str]:
    """Yield why a request was not planned at all."""
    yield one.reason.value
    if one.reason is Reason.UNCOVERED:
        yield "submit it by itself:  modicum release submit"
    if one.verdict.unmatched:
        yield unmatched_text(one.verdict.unmatched)
    denying = [loss for loss in one.verdict.losses if not loss.allowed]
    yield from (_denial(loss) for loss in denying)
    locked = ((loss.locked, loss.rule.unit) for loss in denying)
    yield from dict.fromkeys(locked_remedy(why, unit) for why, unit in locked if why)


def rejected_lines(planned: RoundPlan, request: int) -> Iterator[str]:
    """Yield why a request was planned and not accepted."""
    yield from map(_obstacle, obstacles(planned, request, most=_OBSTACLES))


def _denial(loss: RuleLoss) -> str:
    found = amounts(loss)
    where = f" ({loss.cell})" if loss.cell else ""
    if loss.locked is not None:
        return f"{loss.rule.id}{where}: {locked_text(loss.locked, loss.rule.unit)}"
    together = amount_text(found.together, found.scale)
    return (
        f"{loss.rule.id}{where}: {found.measure} {together} in total, limit"
        f" {amount_text(found.limit, found.scale)}"
    )


def _obstacle(one: Obstacle) -> str:
    scale = DELTA_UNIT if one.coordinate == "delta" else LOSS_UNIT
    cost = "inf" if one.cost is None else amount_text(one.cost, scale)
    where = f" ({one.cell})" if one.cell else ""
    return (
        f"{one.rule}{where}: needs {one.coordinate} {cost}, of"
        f" {amount_text(one.before, scale)} {_amount_left(one.left, scale)} are left"
        f"{_taken(one.rivals)}"
    )


def _amount_left(units: int, scale: int) -> str:
    return amount_text(max(units, 0), scale)


def _taken(rivals: Sequence[str]) -> str:
    if not rivals:
        return ""
    return f"; taken by {shortened(rivals, _RIVALS)}"

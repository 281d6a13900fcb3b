"""Where every rule stands, as answers show it."""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import asdict

from modicum.api.local.explanation.denial_text import loss_view
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.views.problems import problems_view
from modicum.api.schema import policy as schema
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import NamedPolicy
from modicum.core.errors import Problem
from modicum.ledger import RuleLoss, State
from modicum.ledger.decision.amounts import filled
from modicum.ledger.state.past_vocabulary import redefined_units
from modicum.policy import CompiledPolicy

#: A rule that is fuller than this is near its limit.
_NEAR = Fraction(4, 5)


def status_view(view: LedgerView) -> schema.Status:
    """Return where every rule over history stands."""
    return schema.Status(
        **asdict(policy_view(view.policy(), view.state())),
        rules=tuple(map(standing_view, view.standings())),
        problems=problems_view(understated(view)),
    )


def understated(view: LedgerView) -> tuple[Problem, ...]:
    """Return why rules show less than was released: their unit was redefined.

    Args:
        view: The ledger.
    """
    state = view.state()
    counted = state.releases.counted_seqs(state.at)
    found = redefined_units(state.policies, counted, view.policy())
    return tuple(one.problem for one in found if one.rules)


def policy_view(compiled: CompiledPolicy, state: State) -> schema.PolicyStatus:
    """Return the policy that rules are from, and the ledger.

    Args:
        compiled: The policy.
        state: The state at the head.
    """
    active, policy = state.policy, compiled.policy
    return schema.PolicyStatus(
        policy=NamedPolicy(
            name=policy.name,
            digest=policy.digest,
            active=active is not None and active.digest == policy.digest,
        ),
        active=None
        if active is None
        else schema.ActivePolicy(
            name=active.name, digest=active.digest, entry=active.seq
        ),
        ledger=Head(seq=state.seq, head=state.head),
        releases=state.releases.counted,
        denials=state.denials,
    )


def standing_view(loss: RuleLoss) -> schema.RuleStanding:
    """Return where a rule stands.

    Args:
        loss: What it was charged.
    """
    shown = loss_view(loss)
    return schema.RuleStanding(
        rule=shown.rule,
        unit=shown.unit,
        stage="history",
        cell=shown.cell,
        cells_denying=shown.cells_denying,
        allowed=shown.allowed,
        cause=shown.cause,
        measure=shown.measure,
        spent=shown.together,
        limit=shown.limit,
        budget=shown.budget,
        approx_dp=shown.approx_dp,
        when=shown.when,
        source=shown.source,
        state=standing_word(loss),
    )


def standing_word(loss: RuleLoss) -> str:
    """Return how full a rule is, in a word.

    Args:
        loss: What it was charged.
    """
    if not loss.own_filter.enforced:
        return "not limited"
    if not loss.allowed:
        return "OVER"
    return "near" if filled(loss) >= _NEAR else "ok"

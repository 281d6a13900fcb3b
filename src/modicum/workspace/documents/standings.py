"""Where every rule stands, as plain JSON."""

from __future__ import annotations

from fractions import Fraction

from modicum.core.errors import Problem
from modicum.ledger import RuleLoss, State
from modicum.ledger.deciding.amounts import filled
from modicum.ledger.state.past_words import redefined_units
from modicum.policy import CompiledPolicy
from modicum.workspace.explaining.explain import loss_to_dict
from modicum.workspace.ledger_view import LedgerView

#: A rule that is fuller than this is near its limit.
_NEAR = Fraction(4, 5)


def status_to_dict(view: LedgerView) -> dict[str, object]:
    """Return where every rule stands, and the ledger.

    Args:
        view: The ledger.
    """
    compiled, state = view.policy(), view.state()
    return {
        **head_to_dict(compiled, state),
        "rules": [standing_to_dict(one) for one in view.standings()],
        "problems": [one.to_dict() for one in understated(view)],
    }


def understated(view: LedgerView) -> tuple[Problem, ...]:
    """Return why rules show less than was released: their unit was redefined.

    Args:
        view: The ledger.
    """
    state = view.state()
    counted = state.releases.counted_seqs(state.at)
    found = redefined_units(state.policies, counted, view.policy())
    return tuple(one.problem for one in found if one.rules)


def head_to_dict(compiled: CompiledPolicy, state: State) -> dict[str, object]:
    """Return which policy is looked by, which one is active, and how far the log goes.

    Args:
        compiled: The policy that is looked by.
        state: The state at the head.
    """
    active = state.policy
    return {
        "policy": {
            "name": compiled.policy.name,
            "digest": compiled.policy.digest,
            "active": active is not None and active.digest == compiled.policy.digest,
        },
        "active": active
        and {"name": active.name, "digest": active.digest, "entry": active.seq},
        "ledger": {"seq": state.seq, "head": state.head},
        "releases": state.releases.counted,
        "denials": state.denials,
    }


def standing_to_dict(loss: RuleLoss) -> dict[str, object]:
    """Return where a rule stands.

    Args:
        loss: What it was charged.
    """
    shown = loss_to_dict(loss)
    for key in ("alone", "before", "filter", "undated", "unlocked"):
        del shown[key]
    shown["spent"] = shown.pop("together")
    return {**shown, "state": standing_word(loss)}


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

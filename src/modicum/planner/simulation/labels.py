"""Which rules of a policy requests fall under, and in which months."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.planner.allocation.problem import Booleans, Integers
from modicum.planner.rounds.periods import ALWAYS, Slots
from modicum.policy import CompiledPolicy
from modicum.policy.predicates import Facts, Scope
from modicum.workloads.model import Labels, Requests, Workload

#: The label of a query-only model in a scenario's policy.
CONTEXT, BLACK_BOX = "ml", "black-box"


class Labeled:
    """The rules that each request of a workload matches, and its months.

    Args:
        workload: The workload.
        policy: The policy.
        held: The numbers of the enforced rules; others are left out.
        static_everywhere: Whether reading a static attribute concerns every month.
    """

    def __init__(
        self,
        workload: Workload,
        policy: CompiledPolicy,
        held: Sequence[int],
        *,
        static_everywhere: bool,
    ) -> None:
        labels = labels_of(workload.requests)
        found = matching(policy, labels, held)
        self._position = {int(id_): n for n, id_ in enumerate(workload.requests.id)}
        self._first = np.cumsum([0, *map(len, found)])
        self._rule = np.array([rule for rules in found for rule in rules], np.int64)
        self._timed = np.array(
            [is_timed(policy, policy.rules[rule].unit) for rule in held], np.bool_
        )
        self._everywhere = static_everywhere & reads_static(policy, labels)

    def charged(
        self, requests: Requests, slots: Slots, own: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Return the charged accounts of requests.

        Args:
            requests: Some requests of the workload.
            slots: The accounts of a rule.
            own: The months in which the charged groups became active, without
                duplicates.

        Returns:
            The request, the slot, and the rule of each account that is charged.
        """
        at = np.array([self._position[int(id_)] for id_ in requests.id], np.int64)
        counts = np.diff(self._first)[at]
        owner = np.repeat(np.arange(len(at)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        rule = self._rule[np.repeat(self._first[at], counts) + within]
        timed, everywhere = self._timed[rule], self._everywhere[at][owner]
        month = labels_of(requests).month[owner]
        found = [_charged(~timed, owner, rule, np.full(len(owner), ALWAYS))]
        for one in own.tolist():
            in_month = slots.of_period(month, one)
            found.append(_charged(timed & ~everywhere, owner, rule, in_month))
            for slot in slots.of_all(one).tolist():
                always = np.full(len(owner), slot)
                found.append(_charged(timed & everywhere, owner, rule, always))
        owners, used, rules = zip(*found, strict=True)
        return np.concatenate(owners), np.concatenate(used), np.concatenate(rules)


def _charged(
    kept: Booleans, owner: Integers, rule: Integers, slot: Integers
) -> tuple[Integers, Integers, Integers]:
    return owner[kept], slot[kept], rule[kept]


# --- rules and labels -----------------------------------------------------------------


def labels_of(requests: Requests) -> Labels:
    """Return the labels of requests.

    Raises:
        InputError: If they have none.
    """
    if requests.labels is None:
        raise _refused("the requests of the workload have no labels")
    return requests.labels


def matching(
    policy: CompiledPolicy, labels: Labels, held: Sequence[int]
) -> list[list[int]]:
    """Return, for each request, the positions in `held` of the rules it falls under.

    Raises:
        InputError: If the policy does not know an attribute that is read.
    """
    position = {rule: n for n, rule in enumerate(held)}
    found = []
    for request in range(len(labels)):
        numbers = policy.rules.finder.matching([_facts(policy, labels, request)])
        found.append([position[rule] for rule in numbers if rule in position])
    return found


def _facts(policy: CompiledPolicy, labels: Labels, request: int) -> Facts:
    vocabulary = policy.policy.vocabulary
    read = frozenset(_names(labels, request))
    if not read <= vocabulary.attributes:
        unknown = min(read - vocabulary.attributes)
        raise _refused(f"the policy has no attribute `{unknown}`, which is read")
    defaults = {name: label.default for name, label in vocabulary.labels.items()}
    if bool(labels.black_box[request]) and CONTEXT in defaults:
        defaults[CONTEXT] = BLACK_BOX
    values = {
        (scope, name): value for scope in Scope for name, value in defaults.items()
    }
    return Facts(read, values, {})


def _names(labels: Labels, request: int) -> list[str]:
    return [f"a{number}" for number in labels.attributes_of(request)]


def reads_static(policy: CompiledPolicy, labels: Labels) -> Booleans:
    """Return which requests read an attribute that concerns every month."""
    static = {name for name, one in policy.policy.attributes.items() if one.static}
    reads = [not static.isdisjoint(_names(labels, n)) for n in range(len(labels))]
    return np.array(reads, np.bool_)


def is_timed(policy: CompiledPolicy, name: str) -> bool:
    """Return whether a unit has periods, which must be months."""
    unit = policy.policy.vocabulary.unit_facts.get(name)
    if unit is None or unit.period is None:
        return False
    if unit.period != "month":
        raise _refused(f"the unit `{name}` has periods that are not months")
    return True


def _refused(message: str) -> InputError:
    return InputError(
        Problem(
            Code.OUT_OF_RANGE,
            message,
            help="use a scenario of `modicum.workloads.dpolicy` and its policy",
        )
    )

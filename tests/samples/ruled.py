"""Small random workloads under random policies, and what their runs are told as."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random

import numpy as np
from budget import counted, seed
from oracle.ruled import Charge, Limit, Told

from modicum.accounting.grid import DELTA
from modicum.planner import Unlocking
from modicum.planner.simulation.scenario import filtered
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import Facts, Scope, holds
from modicum.policy.rules import Rule
from modicum.workloads.model import Labels, Requests, Workload
from modicum.workloads.request_types import all_types

ATTRIBUTES = 5
FILTER = "combined-v2"
#: So many policies there are for a seed, of one choice of units.
POLICIES = counted(12)
HEAD = """
modicum: policy/v1
name: random
dp: {neighbors: add-remove, bare_budget: {type: approx-dp, delta: 1e-7}}
units:
  user: {id: user_id, neighbors: any-change}
  user-month: {id: user_id, time: {column: at, period: month}, within: user}
labels:
  ml: {values: [none, black-box], default: none}
schema:
  categories: {c0: low, c1: high}
  attributes:
    a0: [low, {c0: member}, static]
    a1: [low, {c0: member, c1: strong}]
    a2: [high, {c1: member}]
    a3: [high, {c1: weak, c0: member}]
    a4: [low, {c0: strong}]
policies:
"""
BASES = (
    '{{name: total, when: "true", unit: {unit}, budget: {most}}}',
    "{{name: attr, for_each: attribute, unit: {unit},"
    " budget: {{low: {most}, high: {least}}}}}",
    "{{name: cat, for_each: category, unit: {unit},"
    " budget: {{low: {most}, high: {least}}},"
    " levels: {{member: same, strong: {{scale: 1.5}}, weak: {{scale: 2}}}}}}",
    '{{name: zcdp, when: "true", unit: {unit}, budget: {{rho: {least}}}}}',
    '{{name: pure, when: "true", unit: {unit}, budget: {{eps: {most}}}}}',
    '{{name: renyi, when: "true", unit: {unit},'
    " budget: {{rdp: {{4: {least}, 16: {most}}}}}}}",
    '{{name: free, when: "true", unit: {unit}, budget: unlimited}}',
)
EXTENSION = """
extensions:
  - name: ml
    settings:
      standard: {{when: 'm.ml == "none"', budget: same, within: black-box}}
      black-box: {{when: "true", budget: {{scale: {factor}}}}}
"""
TYPES = all_types((Fraction(1, 4), Fraction(1)))


def random_policy(
    rng: Random, units: tuple[str, ...] = ("user", "user-month", "user-month")
) -> CompiledPolicy:
    """Return a policy of some rules, most of which deny something now and then.

    Reading one takes longer than a run, so there are only a few of them for each seed.
    """
    return _policy(f"{seed()}/policy/{rng.randrange(POLICIES)}", units)


@cache
def _policy(name: str, units: tuple[str, ...]) -> CompiledPolicy:
    rng = Random(name)
    chosen = [rng.randrange(len(BASES)) for _ in range(rng.randint(1, 4))]
    lines = []
    for number, base in enumerate(sorted(set(chosen))):
        least = rng.choice(("0.1", "0.3", "1"))
        most = rng.choice(("0.5", "1", "3", "6"))
        unit = rng.choice(units)
        line = BASES[base].format(unit=unit, least=least, most=most)
        lines.append(f"  - {line.replace('name: ', f'name: p{number}-', 1)}")
    text = HEAD + "\n".join(lines) + "\n"
    # A factor changes neither budgets by orders nor what is unlimited.
    if not {5, 6} & set(chosen) and rng.random() < 0.5:
        text += EXTENSION.format(factor=rng.choice((1, 2, 5)))
    return filtered(compile_text(text.encode(), "random.yaml"), FILTER)


def random_setting(rng: Random, solver: str) -> Setting:
    """Return a setting with prices and a filter that are proven for every budget."""
    slack = rng.choice((Fraction(0), Fraction(2, 5), Fraction(1)))
    return Setting(
        filter=FILTER,
        pricing="tight",
        schedule=Unlocking(rng.randint(1, 5), slack),
        solver=solver,
        attempts=rng.choice((1, 1, 3)) if solver != "fcfs" else 1,
        partitioning=rng.random() < 0.8,
    )


def random_workload(rng: Random, window: int, *, long: bool = False) -> Workload:
    """Return some requests with labels, over some months and a small ring.

    Args:
        rng: Decides.
        window: How many groups are active at once.
        long: Whether there are many, over some months, about few of them.
    """
    rounds, domain = rng.randint(1, 7), rng.choice((1, 2, 5, 12))
    count = rng.choice((1, 5, 30, 40))
    months = 99, 106
    if long:
        rounds, count, months = 14, 120, (102, 103)
    read = [
        sorted(rng.sample(range(ATTRIBUTES), rng.choice((0, 1, 1, 2, 3))))
        for _ in range(count)
    ]
    arrived = sorted(rng.randrange(rounds) for _ in range(count))
    labels = Labels(
        black_box=np.array([rng.random() < 0.4 for _ in range(count)]),
        month=np.array([rng.randint(*months) for _ in range(count)]),
        starts=np.cumsum([0, *map(len, read)]),
        attributes=np.array([one for each in read for one in each], np.int64),
    )
    requests = Requests(
        types=TYPES,
        id=np.arange(count) * 3 + 1,
        round=np.array(arrived) + window - 1,
        type=np.array([rng.randrange(len(TYPES)) for _ in range(count)]),
        first=np.array([rng.randrange(domain) for _ in range(count)]),
        width=np.array([rng.randint(1, domain) for _ in range(count)]),
        utility=np.array([rng.randint(0, 9) for _ in range(count)]),
        labels=labels,
    )
    return Workload(
        sampling=(Fraction(1),),
        rounds=rounds,
        domain=domain,
        name="random",
        window=window,
        requests=requests,
    )


def told(run: Run, policy: CompiledPolicy, *, static_everywhere: bool) -> Told:
    """Return what happened in a run, and what all rules of a policy say to it."""
    schedule = run.setting.schedule
    assert isinstance(schedule, Unlocking)
    limits, rules = {}, tuple(policy.rules)
    for rule in rules:
        limit = policy.filter_of(rule.budget)
        if limit.enforced:
            limits[rule.id] = Limit(
                caps=dict(limit.caps),
                every=limit.every,
                delta=(DELTA, limit.delta_cap),
                by_month="month" in rule.unit,
            )
    return Told(
        size=run.workload.domain,
        rounds=run.workload.round_numbers,
        life=schedule.rounds,
        slack=schedule.slack,
        limits=limits,
        charges=tuple(
            charge(run, policy, rules, one, static_everywhere=static_everywhere)
            for one in np.flatnonzero(run.accepted).tolist()
        ),
    )


def charge(
    run: Run,
    policy: CompiledPolicy,
    rules: tuple[Rule, ...],
    request: int,
    *,
    static_everywhere: bool,
) -> Charge:
    """Return what a request takes, as if it was accepted if it was not."""
    requests = run.workload.requests
    labels, kind = requests.labels, requests.of_type(request)
    assert labels is not None
    if not run.setting.subsampling:
        kind = kind.on_everybody()
    read = {f"a{number}" for number in labels.attributes_of(request)}
    label = "black-box" if labels.black_box[request] else "none"
    facts = Facts(frozenset(read), {(scope, "ml"): label for scope in Scope}, {})
    static = any(policy.policy.attributes[name].static for name in read)
    accepted_in = int(run.accepted_in[request])
    whole = not run.setting.partitioning
    return Charge(
        round=accepted_in if accepted_in >= 0 else int(requests.round[request]),
        start=0 if whole else int(requests.first[request]),
        width=run.workload.domain if whole else int(requests.width[request]),
        cost=kind.loss(run.setting.pricing).coordinates,
        rules=frozenset(rule.id for rule in rules if falls_under(facts, rule)),
        month=None if static and static_everywhere else int(labels.month[request]),
    )


def falls_under(facts: Facts, rule: Rule) -> bool:
    """Return whether all predicates of a rule hold."""
    return all(holds(one, facts) for one in (rule.predicate, *rule.settings))

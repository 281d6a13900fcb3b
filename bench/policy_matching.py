"""One release against 220,896 rules, beside NumPy that looks at every rule.

Run it with `python bench/policy_matching.py`, or with `--quick`. All sides answer the
same question about the same releases and the same sums: may it pass? They take turns,
fifty releases at a time, in one process, and must agree every time. A side answers each
fifty twice, and only the second time is taken, so that nobody pays for the caches that
another one has filled with its own. Times are processor time, since a release is in
numbers (its attributes, contexts and losses); how long it takes to get there from a
record of the ledger is the same for all, and shown.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import TypeAlias, TypeVar

import numpy as np

from modicum.accounting import Loss, mechanisms
from modicum.ledger.bulk import QuickBalances, ReleaseRows, numba_engine
from modicum.ledger.bulk.layout import Booleans, Integers, Layout, Rows, layout_of
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text

SEED = 20261121
#: Attributes and categories: 4 units x (1 + 1400 + 3 x 300) bases x 24 contexts.
ATTRIBUTES, CATEGORIES = 1400, 300
UNITS = {"day": ("week", "month"), "week": ("user",), "month": ("user",), "user": ()}
MODELS = ("none", "small", "large", "shared", "hosted", "public")
AUDIENCES = ("team", "company", "partners", "world")
DELTA = "1e-7"


# --- the policy and the releases ------------------------------------------------------


def policy(
    attributes: int = ATTRIBUTES, categories: int = CATEGORIES
) -> CompiledPolicy:
    """Return a policy with a random budget for each attribute, category and unit."""
    rng = random.Random(SEED)  # noqa: S311 - no secret
    names = [f"c{number}" for number in range(categories)]
    risk = {name: f"r-{name}" for name in names}
    written = {
        "modicum": "policy/v1",
        "name": "large",
        "dp": {"bare_budget": {"type": "approx-dp", "delta": float(DELTA)}},
        "units": {
            unit: {"id": "user_id", "neighbors": "any-change", "within": list(larger)}
            for unit, larger in UNITS.items()
        },
        "labels": {
            "model": {"values": MODELS, "default": MODELS[0]},
            "audience": {"values": AUDIENCES, "default": AUDIENCES[0]},
        },
        "schema": {
            "categories": risk,
            "attributes": {
                f"a{number}": ["any", _memberships(rng, names)]
                for number in range(attributes)
            },
        },
        "policies": [
            one for unit in UNITS for one in _policies(rng, unit, attributes, risk)
        ],
        "extensions": [_chain("model", MODELS), _chain("audience", AUDIENCES)],
    }
    return compile_text(json.dumps(written).encode(), "large.yaml")


def _memberships(rng: random.Random, names: list[str]) -> dict[str, str]:
    several = rng.sample(names, min(len(names), rng.choice([1, 2, 3, 4, 5, 6])))
    levels = ["member", *(rng.choice(["strong", "weak"]) for _ in several[1:])]
    return dict(zip(several, levels, strict=True))


def _policies(
    rng: random.Random, unit: str, attributes: int, risk: dict[str, str]
) -> list[object]:
    def budget() -> int:
        return rng.randint(4, 20)

    return [
        {"name": f"all-{unit}", "when": "true", "unit": unit, "budget": 20},
        {
            "name": f"attr-{unit}",
            "for_each": "attribute",
            "unit": unit,
            "budget": {"any": 10},
            "override": {f"a{number}": budget() for number in range(attributes)},
        },
        {
            "name": f"cat-{unit}",
            "for_each": "category",
            "unit": unit,
            "budget": {level: budget() for level in risk.values()},
            "levels": {
                "member": "same",
                "strong": {"scale": 1.5},
                "weak": {"scale": 2},
            },
        },
    ]


def _chain(label: str, values: Sequence[str]) -> object:
    """Return an extension of settings that include each other, ever looser."""
    settings: dict[str, object] = {}
    for number, value in enumerate(values):
        last = number == len(values) - 1
        listed = ", ".join(f'"{one}"' for one in values[: number + 1])
        settings[f"up-to-{value}"] = {
            "when": "true" if last else f"m.{label} in [{listed}]",
            "budget": {"scale": 1 + 0.5 * number},
        }
    return {"name": label, "settings": settings}


def releases(
    compiled: CompiledPolicy, count: int, *, most: float
) -> list[RecordedRelease]:
    """Return random releases of one mechanism each, of four attributes on average.

    Args:
        compiled: The policy.
        count: How many.
        most: The largest rho.
    """
    rng = random.Random(SEED + count)  # noqa: S311 - no secret
    names = sorted(compiled.policy.vocabulary.attributes)
    losses = [_losses(rng.uniform(most / 10, most)) for _ in range(200)]
    return [
        RecordedRelease(
            id=f"release-{number}",
            content="0" * 64,
            labels={"model": MODELS[0], "audience": AUDIENCES[0]},
            metadata={},
            mechanisms=(_mechanism(rng, names, rng.choice(losses)),),
        )
        for number in range(count)
    ]


def _losses(rho: float) -> dict[str, Loss]:
    """Return a loss for each unit; larger units lose more."""
    shares = {"day": 0.2, "week": 0.5, "month": 0.7, "user": 1.0}
    return {
        unit: mechanisms.gaussian(
            rho=Fraction(round(rho * share * 10**9), 10**9)
        ).loss()
        for unit, share in shares.items()
    }


def _mechanism(
    rng: random.Random, names: list[str], losses: dict[str, Loss]
) -> RecordedMechanism:
    reads = {rng.choice(names)}
    while rng.random() < 0.75:
        reads.add(rng.choice(names))
    return RecordedMechanism(
        description={"name": "m", "kind": "gaussian"},
        attributes=tuple(sorted(reads)),
        labels={"model": rng.choice(MODELS), "audience": rng.choice(AUDIENCES)},
        losses=losses,
        neighbors=dict.fromkeys(losses, "any-change"),
    )


# --- what it is compared with ---------------------------------------------------------


class Dense:
    """What NumPy does when it is asked about every rule, with its arrays by column.

    Args:
        layout: All rules.
    """

    def __init__(self, layout: Layout) -> None:
        rows = layout.rows
        self._context, self._unit = rows.context, rows.unit
        self._caps = np.ascontiguousarray(layout.caps.T)
        self._sums = np.zeros_like(self._caps)
        # Rules lie in blocks of one unit.
        steps = (np.flatnonzero(np.diff(rows.unit)) + 1).tolist()
        self._blocks = [slice(*two) for two in pairwise([0, *steps, len(rows.unit)])]
        self._bits = _bits(rows)

    def take_over(self, sums: Integers) -> None:
        """Copy the sums of all rules."""
        self._sums[:] = sums.T

    def every_test_on_every_rule(self, release: ReleaseRows) -> bool:
        """Return whether a release of one mechanism may pass."""
        losses = release.losses[0].T
        each = [loss[self._unit] for loss in losses]
        return not (
            self._matching(release) & ~_within(self._sums, self._caps, each)
        ).any()

    def by_blocks(self, release: ReleaseRows) -> bool:
        """Return the same; in each block of rules, a loss is one number."""
        matching, losses = self._matching(release), release.losses[0]
        for block in self._blocks:
            own = losses[self._unit[block.start]].tolist()
            within = _within(self._sums[:, block], self._caps[:, block], own)
            if (matching[block] & ~within).any():
                return False
        return True

    def matching_first(self, release: ReleaseRows) -> bool:
        """Return the same; the caps of rules that do not match are left alone."""
        numbers = np.flatnonzero(self._matching(release))
        caps, sums = self._caps[:, numbers], self._sums[:, numbers]
        losses = release.losses[0][self._unit[numbers]].T
        return bool(_within(sums, caps, losses).all())

    def _matching(self, release: ReleaseRows) -> Booleans:
        """Return which rules are about an attribute and a context of the release."""
        masks: dict[int, int] = {}
        reads: list[Booleans] = []
        for key in release.keys.tolist():
            masks[key // 64] = masks.get(key // 64, 0) | 1 << key % 64
        for at, mask in masks.items():
            reads.append((self._bits[at] & np.uint64(mask)) != 0)
        matching: Booleans = release.inside[0][self._context] & reduce(or_, reads)
        return matching


def _bits(rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Return for each rule the set of its keys, 64 to a word."""
    per_base = np.diff(rows.first_row)
    keys = len(rows.first_base) - 1
    bits = np.zeros((-(-keys // 64), len(per_base)), dtype=np.uint64)
    for key in range(keys):
        about = rows.bases[rows.first_base[key] : rows.first_base[key + 1]]
        bits[key // 64, about] |= np.uint64(1 << key % 64)
    return np.repeat(bits, per_base, axis=1)


def _within(
    sums: Integers, caps: Integers, losses: Integers | Sequence[int | Integers]
) -> Booleans:
    """Return which rules hold, all being of the any-of kind; delta is the first line.

    Nothing here is above 2**62, so nothing overflows.
    """
    lines = zip(sums, caps, losses, strict=True)
    delta, *others = (own <= cap - loss for own, cap, loss in lines)
    within: Booleans = reduce(or_, others) & delta
    return within


# --- the comparison -------------------------------------------------------------------

Side: TypeAlias = Callable[[ReleaseRows], bool]


@dataclass
class Turn:
    """One side of the comparison.

    Attributes:
        admits: Its answer.
        balances: Whose numbers a release must be in.
        times: How long each answer took, in seconds.
    """

    admits: Side
    balances: QuickBalances
    times: list[float] = field(default_factory=list)


def compare(compiled: CompiledPolicy, count: int) -> None:
    """Print how long each side takes for a release."""
    kernel = numba_engine()
    if kernel is None:
        print("numba is not installed: nothing to compare")
        return
    everything = QuickBalances(compiled, pruned=False)
    pruned, quickest = QuickBalances(compiled), QuickBalances(compiled, kernel=kernel)
    layout = layout_of(compiled, range(len(compiled.rules)))
    dense = Dense(layout)
    sides = {
        "NumPy, every test on every rule": Turn(
            dense.every_test_on_every_rule, everything
        ),
        "the same, by blocks of one unit": Turn(dense.by_blocks, everything),
        "the same, caps of matching rules only": Turn(dense.matching_first, everything),
        "ours in NumPy, all rules": Turn(everything.engine.admits, everything),
        "ours in NumPy, kept rules": Turn(pruned.engine.admits, pruned),
        "ours compiled, kept rules": Turn(quickest.engine.admits, quickest),
    }
    wanted = releases(compiled, count, most=0.4)
    allowed = 0
    for first in range(0, count, 50):
        some = wanted[first : first + 50]
        dense.take_over(everything.engine.rest)  # Nothing was carried.
        answers = [_answers(side, some) for side in sides.values()]
        if any(other != answers[0] for other in answers):
            message = "the sides do not agree"
            raise AssertionError(message)
        allowed += sum(answers[0])
        for release, passes in zip(some, answers[0], strict=True):
            for balances in (everything, pruned, quickest) if passes else ():
                balances.charge(release)
    kept = len(compiled.pruned.kept) / len(compiled.rules)
    print(f"{len(compiled.rules):,} rules, {kept:.1%} kept; {count} releases,")
    print(f"{allowed} of them allowed; {len(layout.coordinates)} coordinates\n")
    _table(sides)
    numbers = [_timed(quickest.release_rows, release)[0] for release in wanted]
    print(f"\nputting a release into numbers: {_micro(numbers, 50):.1f} us")


def _answers(side: Turn, some: Sequence[RecordedRelease]) -> list[bool]:
    answers: list[bool] = []
    inquiries = [side.balances.release_rows(release) for release in some]
    for rows in inquiries:
        side.admits(rows)
    for rows in inquiries:
        seconds, passes = _timed(side.admits, rows)
        side.times.append(seconds)
        answers.append(passes)
    return answers


_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def _timed(run: Callable[[_Given], _Found], given: _Given) -> tuple[float, _Found]:
    start = time.thread_time_ns()
    found = run(given)
    return (time.thread_time_ns() - start) / 1e9, found


def _micro(times: Sequence[float], percent: int) -> float:
    return float(np.percentile(times, percent)) * 1e6


def _table(sides: dict[str, Turn]) -> None:
    base = _micro(next(iter(sides.values())).times, 50)
    print("| | p50, us | p99, us | ratio of p50 |")
    print("|---|---|---|---|")
    for name, side in sides.items():
        half, most = _micro(side.times, 50), _micro(side.times, 99)
        print(f"| {name} | {half:,.1f} | {most:,.1f} | {base / half:,.1f} |")


def matching(*, quick: bool) -> None:
    """Print the comparison.

    Args:
        quick: Whether to take a tenth of the rules, and fewer releases.
    """
    sizes = (120, 30) if quick else (ATTRIBUTES, CATEGORIES)
    print(f"seed {SEED}; releases of one mechanism that reads four attributes or so\n")
    compare(policy(*sizes), 200 if quick else 600)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,256 rules")
    matching(quick=parser.parse_args().quick)


if __name__ == "__main__":
    main()

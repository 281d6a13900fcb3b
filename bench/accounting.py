"""Accounting beside dp-accounting and autodp: time, and the epsilon that is reported.

Run it with `python bench/accounting.py` (minutes) or with `--quick` (under a minute,
fewer runs). All contestants take turns in one process, and the best time of each
counts. What is sound for an adaptive history is compared with its like: a filter, one
Renyi order that was fixed beforehand, or zCDP. Picking the best order afterwards, and
privacy loss distributions, are sound for a batch only whose parameters were all fixed
before its first output.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import dp_accounting
import numpy as np
from autodp import rdp_acct, rdp_bank
from dp_accounting.pld import privacy_loss_distribution as pld_library
from dp_accounting.rdp import RdpAccountant

from modicum.accounting import FILTERS
from modicum.accounting.batch_format import Batch, Part, merged, total_of_parts
from modicum.accounting.conversions.epsilon_delta import curve_epsilon
from modicum.accounting.conversions.moments import renyi_epsilon, zcdp_epsilon
from modicum.accounting.filters.coordinates import OrderFilter
from modicum.accounting.grid import ORDERS, RHO, order_index
from modicum.accounting.mechanisms import ACCOUNT_KINDS as KINDS
from modicum.accounting.named_mechanisms import complete_values
from modicum.integrations.pld.batch import batch_epsilon

SEED = 20261121
DELTA = Fraction(1, 10**6)
FILTER = "combined-v2"
#: The budget for whose Gaussian histories the one order is best.
BUDGET = 3.0
KIND_NAMES = ("laplace", "gaussian", "randomized-response", "dp-sgd")


# --- histories -----------------------------------------------------------------------


def part(kind: str, **values: Fraction) -> Part:
    """Return a mechanism."""
    named = {name.replace("_", "-"): value for name, value in values.items()}
    return Part(kind, tuple(complete_values(KINDS[kind], named).items()))


def mechanism(kind: str, size: float, spread: Fraction) -> Part:
    """Return a mechanism of a kind, for a history of `size` times 10,000 runs."""
    noise = Fraction(math.isqrt(int(size * 10**8)), 10**4) * spread
    if kind == "laplace":
        return part(kind, scale=250 * noise)
    if kind == "gaussian":
        return part(kind, sigma=200 * noise)
    if kind == "randomized-response":
        return part(kind, truth=Fraction(1, 2) + Fraction(1, 700) / noise)
    return part(
        kind,
        noise_multiplier=spread,
        sampling_rate=Fraction(1, 1000),
        steps=Fraction(1),
    )


def mixed(runs: int, distinct: int, rng: random.Random) -> list[Part]:
    """Return a history in which kinds and parameters take turns at random."""
    size = runs / 10_000
    spreads = [1 + Fraction(i, 2 * distinct) for i in range(distinct)]
    pool = [mechanism(k, size, spread) for k in KIND_NAMES for spread in spreads]
    found = [pool[i % len(pool)] for i in range(runs)]
    rng.shuffle(found)
    return found


# --- modicum ------------------------------------------------------------------------


def forget() -> None:
    """Empty every cache of modicum."""
    for name, module in list(sys.modules.items()):
        if name.startswith("modicum."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def our_filter(history: Sequence[Part]) -> float:
    """Add up every run's loss, in integers, and return the filter's figure."""
    total = total_of_parts(history)
    return FILTERS[FILTER].figure(total, DELTA) / 1e12


def our_filter_counted(history: Sequence[Part]) -> float:
    """As `our_filter`, each set of parameters once with its count."""
    total = total_of_parts(merged(history))
    return FILTERS[FILTER].figure(total, DELTA) / 1e12


def our_order(history: Sequence[Part], order: int) -> float:
    """Charge every run to a filter of one order that has the whole delta."""
    total = total_of_parts(history)
    units = total.units(order_index(Fraction(order)))
    return renyi_epsilon(Fraction(order), units, DELTA) / 1e12


def our_any_order(history: Sequence[Part], order: int) -> float:
    """Charge every run to a filter of one order that the ledger does not keep."""
    spent = OrderFilter(Fraction(order), 0)
    counts = Counter(map(id, history))
    for key, one in {id(one): one for one in history}.items():
        spent = spent.after(one.curve, counts[key])
    return renyi_epsilon(Fraction(order), spent.spent, DELTA) / 1e12


def our_zcdp(history: Sequence[Part]) -> float:
    """Charge every run to a zCDP filter that has the whole delta."""
    total = total_of_parts(history)
    return zcdp_epsilon(total.units(RHO), DELTA) / 1e12


def our_batch(history: Sequence[Part]) -> float:
    """Return the best epsilon of a batch that is fixed beforehand."""
    return curve_epsilon(Batch(merged(history)).curve(), DELTA).units / 1e12


def our_best_batch(history: Sequence[Part]) -> float:
    """Return the least that is known of a batch, with the extra `pld`."""
    return min(our_batch(history), our_pld(history))


def our_pld(history: Sequence[Part]) -> float:
    """Return epsilon by the adapter to dp-accounting's distributions."""
    return float(batch_epsilon(history, DELTA))


# --- dp-accounting --------------------------------------------------------------------


def rho_of(one: Part) -> float:
    """Return the rho that modicum knows, for what a library cannot express."""
    return one.curve.loss().coordinates[RHO] / 1e12


def event(one: Part, *, as_zcdp: bool = False) -> dp_accounting.DpEvent:
    """Return a mechanism as dp-accounting names it.

    Under add/remove it has no randomized response; it gets its tight rho.
    """
    v = {name: float(value) for name, value in one.values}
    if as_zcdp or one.kind == "randomized-response":
        return dp_accounting.ZCDpEvent(RHOS[one])
    if one.kind == "laplace":
        return dp_accounting.LaplaceDpEvent(v["scale"])
    if one.kind == "gaussian":
        return dp_accounting.GaussianDpEvent(v["sigma"])
    return dp_accounting.PoissonSampledDpEvent(
        v["sampling-rate"], dp_accounting.GaussianDpEvent(v["noise-multiplier"])
    )


#: rho of every mechanism, worked out before the clock starts.
RHOS: dict[Part, float] = {}


def dp_stream(
    history: Sequence[Part],
    *,
    orders: Sequence[float] | None = None,
    as_zcdp: bool = False,
) -> float:
    """Charge run by run and return epsilon, at the best of the orders."""
    accountant = RdpAccountant(orders)
    for one in history:
        accountant.compose(event(one, as_zcdp=as_zcdp))
    return float(accountant.get_epsilon(float(DELTA)))


def dp_counted(
    history: Sequence[Part],
    *,
    orders: Sequence[float] | None = None,
    as_zcdp: bool = False,
) -> float:
    """As `dp_stream`, each set of parameters once with its count."""
    accountant = RdpAccountant(orders)
    for one, count in Counter(history).items():
        accountant.compose(event(one, as_zcdp=as_zcdp), count)
    return float(accountant.get_epsilon(float(DELTA)))


def dp_pld(history: Sequence[Part]) -> float:
    """Return epsilon by the distributions themselves, on the library's grid."""
    whole = pld_library.identity()
    for one, count in Counter(history).items():
        v = {name: float(value) for name, value in one.values}
        if one.kind == "laplace":
            single = pld_library.from_laplace_mechanism(v["scale"])
        elif one.kind == "gaussian":
            single = pld_library.from_gaussian_mechanism(v["sigma"])
        elif one.kind == "randomized-response":
            single = pld_library.from_randomized_response(2 * (1 - v["truth"]), 2)
        else:
            single = pld_library.from_gaussian_mechanism(
                v["noise-multiplier"], sampling_prob=v["sampling-rate"]
            )
        whole = whole.compose(single.self_compose(count))
    return float(whole.get_epsilon_for_delta(float(DELTA)))


# --- autodp -------------------------------------------------------------------------


def functions(history: Iterable[Part]) -> dict[Part, Callable[[float], float]]:
    """Return the divergence of each mechanism as autodp computes it."""
    found: dict[Part, Callable[[float], float]] = {}
    for one in history:
        v = {name: float(value) for name, value in one.values}
        if one.kind == "laplace":
            of, given = rdp_bank.RDP_laplace, {"b": v["scale"]}
        elif one.kind == "randomized-response":
            of, given = rdp_bank.RDP_randresponse, {"p": v["truth"]}
        else:
            sigma = v["sigma"] if one.kind == "gaussian" else v["noise-multiplier"]
            of, given = rdp_bank.RDP_gaussian, {"sigma": sigma}
        found.setdefault(one, lambda a, of=of, given=given: of(given, a))
    return found


def autodp_stream(history: Sequence[Part], *, order: int | None = None) -> float:
    """Charge run by run; autodp recognizes a function that it has seen."""
    accountant = rdp_acct.anaRDPacct()
    named = functions(history)
    for one in history:
        if one.kind == "dp-sgd":
            rate = float(dict(one.values)["sampling-rate"])
            accountant.compose_poisson_subsampled_mechanisms(named[one], rate)
        else:
            accountant.compose_mechanism(named[one])
    if order is None:
        return float(accountant.get_eps(float(DELTA)))
    divergence = float(accountant.RDPs_int[order - 1])
    return divergence + offset(order)


def offset(order: float) -> float:
    """Return what Canonne, Kamath & Steinke 2020, Prop. 12, adds to a divergence."""
    tail = (math.log(DELTA) + math.log(order)) / (order - 1)
    return math.log1p(-1 / order) - tail


def order_for(budget: float, orders: Iterable[int]) -> int:
    """Return the order at which a Gaussian history may have the largest rho."""
    return max(orders, key=lambda a: (budget - offset(a)) / a)


# --- the contest --------------------------------------------------------------------


@dataclass
class Contestant:
    """One way to account, and what it did."""

    name: str
    sound: str
    run: Callable[[Sequence[Part]], float]
    cold: bool = False
    ours: bool = False
    seconds: float = math.inf
    epsilon: float = math.nan


def contest(
    history: Sequence[Part], contestants: list[Contestant], repetitions: int
) -> None:
    """Let everybody take turns; note the best time of each."""
    for _ in range(repetitions):
        for one in contestants:
            if one.cold:
                forget()
            start = time.perf_counter()
            one.epsilon = one.run(history)
            one.seconds = min(one.seconds, time.perf_counter() - start)


def adaptive(order: int, kept: int) -> list[Contestant]:
    """Return the contestants that are sound for an adaptive history.

    Args:
        order: The one order of the others.
        kept: The one order that modicum's ledger keeps and is the next best.
    """
    sound = "adaptive"

    def other(name: str, run: Callable[[Sequence[Part]], float]) -> Contestant:
        return Contestant(name, sound, run)

    def ours(name: str, run: Callable[[Sequence[Part]], float]) -> list[Contestant]:
        return [
            Contestant(f"{name}, cold", sound, run, cold=True, ours=True),
            Contestant(f"{name}, warm", sound, run, ours=True),
        ]

    return [
        *ours("modicum filter", our_filter),
        *ours("modicum filter, counted", our_filter_counted),
        *ours(f"modicum, order {kept} only", lambda history: our_order(history, kept)),
        *ours(
            f"modicum, order {order} only",
            lambda history: our_any_order(history, order),
        ),
        *ours("modicum, zCDP only", our_zcdp),
        other(
            f"dp-accounting, order {kept} only",
            lambda history: dp_stream(history, orders=[kept]),
        ),
        other(
            f"autodp, order {kept} only",
            lambda history: autodp_stream(history, order=kept),
        ),
        other(
            f"dp-accounting, order {order} only",
            lambda history: dp_stream(history, orders=[order]),
        ),
        other(
            f"dp-accounting, order {order} only, counted",
            lambda history: dp_counted(history, orders=[order]),
        ),
        other(
            "dp-accounting, zCDP only", lambda history: dp_stream(history, as_zcdp=True)
        ),
        other(
            "dp-accounting, zCDP only, counted",
            lambda history: dp_counted(history, as_zcdp=True),
        ),
        other(
            f"autodp, order {order} only",
            lambda history: autodp_stream(history, order=order),
        ),
    ]


def fixed(*, distributions: bool) -> list[Contestant]:
    """Return the contestants that are sound for a batch fixed beforehand only."""
    sound = "fixed batch"
    found = [
        Contestant("modicum batch, cold", sound, our_batch, cold=True, ours=True),
        Contestant("modicum batch, warm", sound, our_batch, ours=True),
        Contestant("dp-accounting, best order, one by one", sound, dp_stream),
        Contestant("dp-accounting, best order, counted", sound, dp_counted),
        Contestant("autodp, best order", sound, autodp_stream),
    ]
    if distributions:
        found += [
            Contestant("modicum PLD, cold", sound, our_pld, cold=True, ours=True),
            Contestant("modicum batch with PLD", sound, our_best_batch, ours=True),
            Contestant("dp-accounting PLD, counted", sound, dp_pld),
        ]
    return found


def show(title: str, contestants: Sequence[Contestant], runs: int) -> None:
    """Print a table, with ratios to the first row of the same soundness."""
    print(f"\n{title}")
    print("| contestant | sound for | epsilon | ms | us per run | time ratio |")
    print("|---|---|---|---|---|---|")
    for one in contestants:
        first = next(c for c in contestants if c.sound == one.sound)
        cells = (
            one.name,
            one.sound,
            f"{one.epsilon:.6g}",
            f"{one.seconds * 1e3:.1f}",
            f"{one.seconds / runs * 1e6:.1f}",
            f"{one.seconds / first.seconds:.3g}",
        )
        print("| " + " | ".join(cells) + " |")


def verdict(claim: str, *, holds: bool, detail: str) -> None:
    """Print whether a claim holds."""
    print(f"{'PASS' if holds else 'FAIL'}  {claim}: {detail}")


def judge(title: str, contestants: Sequence[Contestant]) -> None:
    """Print what the tables say about the claims."""
    print(f"\nclaims, {title}")
    by_name = {one.name: one for one in contestants}
    batch = by_name["modicum batch, warm"]
    others = [c for c in contestants if c.sound == "adaptive" and not c.ours]
    for other in others:
        rule = other.name.removesuffix(", counted").split(", ")[1]
        own = by_name.get(f"modicum, {rule}, warm")
        if own is not None and "counted" not in other.name:
            ratio = own.epsilon / other.epsilon
            sampled = other.name.startswith("autodp") and ratio > 1 + 1e-9
            verdict(
                f"{rule}: at least as tight as {other.name}",
                holds=ratio <= 1 + 1e-9,
                detail=f"{own.epsilon:.9g} against {other.epsilon:.9g}"
                + ("; below the exact sum for samples: unsound" * sampled),
            )
    one_by_one = [c for c in others if "counted" not in c.name]
    fastest = min(one_by_one, key=lambda c: c.seconds)
    for name in ("modicum filter, warm", "modicum filter, cold"):
        ratio = fastest.seconds / by_name[name].seconds
        verdict(
            f"{name}: at least 10 times as fast as the fastest of them, run by run",
            holds=ratio >= 10,
            detail=f"{ratio:.3g} times as fast as {fastest.name}",
        )
    one_by_one = by_name["dp-accounting, best order, one by one"]
    ratio = one_by_one.seconds / by_name["modicum filter, cold"].seconds
    verdict(
        "modicum filter, cold: at least 10 times as fast as dp-accounting as it comes",
        holds=ratio >= 10,
        detail=f"{ratio:.3g} times as fast as {one_by_one.name}, which is sound for a"
        " fixed batch only",
    )
    distributions = [c for c in contestants if "PLD" in c.name]
    if distributions:
        exact = min(distributions, key=lambda c: c.epsilon)
        ratio = batch.epsilon / exact.epsilon
        verdict(
            "the batch, without the extra: within 1 % of the tightest PLD",
            holds=ratio <= 1.01,
            detail=f"{batch.epsilon:.5g} against {exact.epsilon:.5g} ({exact.name}),"
            f" ratio {ratio:.4f}",
        )
        mine = by_name["modicum batch with PLD"]
        ratio = mine.epsilon / by_name["dp-accounting PLD, counted"].epsilon
        verdict(
            "the batch with the extra: within 1 % of dp-accounting's PLD, or below",
            holds=ratio <= 1.01,
            detail=f"ratio {ratio:.4f}",
        )
    best = min(
        (c for c in contestants if "best order" in c.name), key=lambda c: c.epsilon
    )
    verdict(
        "the batch is at least as tight as every best order",
        holds=batch.epsilon <= best.epsilon * (1 + 1e-9),
        detail=f"{batch.epsilon:.5g} against {best.epsilon:.5g} ({best.name})",
    )


def play(
    title: str, history: list[Part], repetitions: int, *, plds: bool
) -> list[Contestant]:
    """Run one contest, print what came out, and return it."""
    RHOS.update((one, rho_of(one)) for one in set(history))
    order = order_for(BUDGET, range(2, 100))
    kept = order_for(BUDGET, [int(a) for a in ORDERS if a.denominator == 1])
    contestants = adaptive(order, kept) + fixed(distributions=plds)
    contest(history, contestants, repetitions)
    show(title, contestants, len(history))
    judge(title, contestants)
    return contestants


def regrets(contests: Sequence[Sequence[Contestant]]) -> None:
    """Print how far each adaptive accountant is from the best one, at worst."""
    print("\nepsilon over the least of all adaptive contestants, history by history")
    found: dict[str, list[float]] = {}
    for contestants in contests:
        adaptive_ones = [c for c in contestants if c.sound == "adaptive"]
        least = min(c.epsilon for c in adaptive_ones)
        for one in adaptive_ones:
            found.setdefault(one.name, []).append(one.epsilon / least)
    print("| contestant | worst | each |")
    print("|---|---|---|")
    for name, ratios in found.items():
        if "counted" not in name and "cold" not in name:
            each = ", ".join(f"{ratio:.3g}" for ratio in ratios)
            print(f"| {name} | {max(ratios):.3f} | {each} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    rng = random.Random(SEED)  # noqa: S311 - a simulation
    runs, of_one_kind, all_distinct = (
        (1_000, 300, 40) if quick else (10_000, 2_000, 400)
    )
    repetitions = 2 if quick else 3
    print(
        f"seed {SEED}, delta {float(DELTA):g}, {repetitions} repetitions, the minimum"
    )
    print(f"filter {FILTER}; the one order is best for Gaussian noise at {BUDGET:g}")
    contests = []
    title = f"{runs} runs, 12 sets of parameters: 3 of each of {', '.join(KIND_NAMES)}"
    contests.append(play(title, mixed(runs, 3, rng), repetitions, plds=True))
    for kind in KIND_NAMES:
        spreads = [1 + Fraction(i, 6) for i in range(3)]
        pool = [mechanism(kind, of_one_kind / 40_000, spread) for spread in spreads]
        history = [pool[i % 3] for i in range(of_one_kind)]
        title = f"{of_one_kind} runs of {kind}, 3 sets of parameters"
        contests.append(play(title, history, repetitions, plds=True))
    title = f"{all_distinct} runs, every set of parameters its own"
    history = mixed(all_distinct, all_distinct // 4, rng)
    contests.append(play(title, history, 1 if quick else 2, plds=False))
    regrets(contests)


if __name__ == "__main__":
    main()

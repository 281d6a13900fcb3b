"""Printed output of `modicum plan simulate` and `compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from modicum.cli.account_options import json_amount
from modicum.cli.output import count_text, print_table
from modicum.cli.plan_options import AT_ONCE
from modicum.cli.workload_text import outline, sentence
from modicum.core.errors import printable
from modicum.core.rationals import number_text
from modicum.ops.simulation import STEPS, versions

if TYPE_CHECKING:
    from rich.table import Table

    from modicum.ops.simulation import ChosenEngine, Duration, Timed
    from modicum.planner.simulation.setting import Setting
    from modicum.planner.simulation.simulation import Count

# --- one workload ---------------------------------------------------------------------


def simulation_to_dict(
    timed: Sequence[Timed], engine: ChosenEngine, *, round_times: bool
) -> dict[str, object]:
    """Return the result of one workload, as plain data."""
    first, *others = timed
    return {
        "workload": outline(first.run.workload),
        "setting": setting_to_dict(first.run.setting),
        **_run_to_dict(first, round_times=round_times),
        "compared": [
            {
                "solver": one.run.setting.solver,
                **_run_to_dict(one, round_times=round_times),
            }
            for one in others
        ],
        "engine": engine.name,
        "versions": versions(engine),
    }


def setting_to_dict(setting: Setting) -> dict[str, object]:
    """Return how a workload is planned, as plain data."""
    from modicum.accounting.budgets import budget_text
    from modicum.accounting.filters.unlock_schedule import Unlocking

    schedule = setting.schedule
    slack = json_amount(schedule.slack) if isinstance(schedule, Unlocking) else AT_ONCE
    return {
        "solver": setting.solver,
        "budget": budget_text(setting.budget),
        "eps": json_amount(setting.budget.eps),
        "delta": json_amount(setting.budget.delta),
        "filter": setting.filter,
        "conversion": setting.pricing,
        "slack": slack,
        "active": schedule.rounds,
        "attempts": setting.attempts,
        "partitioning": setting.partitioning,
        "subsampling": setting.subsampling,
        "upc": setting.blocks,
    }


def _run_to_dict(timed: Timed, *, round_times: bool) -> dict[str, object]:
    run = timed.run
    rounds = run.by_round().items()
    return {
        **_count_to_dict(run.total()),
        "by_size": {name: _count_to_dict(one) for name, one in run.by_size().items()},
        "by_round": [{"round": t, **_count_to_dict(one)} for t, one in rounds],
        "bounds": bounds_of([timed]),
        "timings": _timings(timed, round_times=round_times),
    }


def bounds_of(runs: Sequence[Timed]) -> dict[str, int | float] | None:
    """Return the known bounds on better plans for single rounds."""
    optima = [one for timed in runs for one in timed.run.optima]
    if not optima:
        return None
    return {
        "rounds": len(optima),
        "proven": sum(one.proven for one in optima),
        "largest_gap": float(max(one.gap for one in optima)),
    }


def _count_to_dict(count: Count) -> dict[str, object]:
    return {
        "utility_fraction": float(count.utility_fraction),
        "requests_fraction": float(count.requests_fraction),
        "requested": count.requested,
        "accepted": count.accepted,
        "utility_requested": count.utility_requested,
        "utility": count.utility,
    }


def _timings(timed: Timed, *, round_times: bool) -> dict[str, object]:
    found: dict[str, object] = {name: _spell(timed.step(name)) for name in STEPS}
    found["total"] = _spell(timed.total())
    found["warm_up"] = None if timed.warm_up is None else _spell(timed.warm_up)
    if round_times:
        found["rounds"] = [
            {"round": number, **{name: _spell(steps[name]) for name in STEPS}}
            for number, steps in timed.rounds.items()
        ]
    return found


def _spell(spell: Duration) -> dict[str, float]:
    return {"cpu": round(spell.cpu, 6), "wall": round(spell.wall, 6)}


# --- several seeds --------------------------------------------------------------------


def comparison_to_dict(
    timed: Mapping[str, Sequence[Timed]], engine: ChosenEngine
) -> dict[str, object]:
    """Return the results of workloads with several seeds, as plain data."""
    first = next(iter(timed.values()))
    workload = first[0].run.workload
    setting = setting_to_dict(first[0].run.setting)
    return {
        "workload": {
            "name": workload.name,
            "objective": workload.objective,
            "rounds": workload.rounds,
            "seeds": [one.run.workload.seed for one in first],
            "requests": [len(one.run.workload.requests) for one in first],
        },
        "setting": {key: value for key, value in setting.items() if key != "solver"},
        "solvers": [
            {"solver": name, **_solver_to_dict(runs, first)}
            for name, runs in timed.items()
        ],
        "engine": engine.name,
        "versions": versions(engine),
    }


def _solver_to_dict(runs: Sequence[Timed], first: Sequence[Timed]) -> dict[str, object]:
    sizes = runs[0].run.by_size()
    spent = [one.total() for one in runs]
    return {
        "utility_fraction": _figures(runs, first, utility_of),
        "requests_fraction": _figures(runs, first, requests_of),
        "by_size": {
            size: {
                "utility_fraction": figure(
                    [float(one.run.by_size()[size].utility_fraction) for one in runs]
                ),
                "requests_fraction": figure(
                    [float(one.run.by_size()[size].requests_fraction) for one in runs]
                ),
            }
            for size in sizes
        },
        "bounds": bounds_of(runs),
        "timings": {
            "cpu": figure([one.cpu for one in spent]),
            "wall": figure([one.wall for one in spent]),
        },
    }


def utility_of(timed: Timed) -> float:
    """Return which part of the utility was accepted."""
    return float(timed.run.total().utility_fraction)


def requests_of(timed: Timed) -> float:
    """Return which part of the requests was accepted."""
    return float(timed.run.total().requests_fraction)


def figure(values: Sequence[float]) -> dict[str, float | None]:
    """Return the mean and the standard deviation of a sample; null of a single one."""
    return {"mean": fmean(values), "std": stdev(values) if len(values) > 1 else None}


def ratio(mean: float, first: float) -> float | None:
    """Return a mean over that of the first; None if that is 0."""
    return mean / first if first else None


def _figures(
    runs: Sequence[Timed], first: Sequence[Timed], of: Callable[[Timed], float]
) -> dict[str, object]:
    values = [of(one) for one in runs]
    whole = figure(values)
    to_first = ratio(fmean(values), fmean([of(one) for one in first]))
    return {**whole, "ratio": to_first, "each": values}


def print_simulation(timed: Sequence[Timed], engine: ChosenEngine) -> None:
    """Print the result of one workload."""
    first = timed[0]
    print(sentence(first.run.workload))
    print(f"{_setting_text(first.run.setting)}; solver {first.run.setting.solver}")
    print()
    _print_sizes(first)
    if len(timed) > 1:
        print()
        _print_beside(timed)
    print()
    for one in timed:
        _print_bounds([one])
    print(_times_text(first, engine))


def print_comparison(
    timed: Mapping[str, Sequence[Timed]], engine: ChosenEngine
) -> None:
    """Print the results of workloads with several seeds."""
    name, first = next(iter(timed.items()))
    workload = first[0].run.workload
    seeds = [one.run.workload.seed for one in first]
    text = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    print(
        f"{printable(workload.name)} in {count_text(workload.rounds, 'round')},"
        f" {'seed' if len(seeds) == 1 else 'seeds'} {text}"
    )
    print(_setting_text(first[0].run.setting))
    print()
    _print_solvers(timed)
    print(f"\nEach number is a mean{_over(seeds)}. Ratios are to {name}.", end=" ")
    print(f"Times are of the CPU, with {engine.name}.")
    for runs in timed.values():
        _print_bounds(runs)


# --- tables ---------------------------------------------------------------------------


def _print_bounds(runs: Sequence[Timed]) -> None:
    """Print how close an optimizing solver has come to the bound."""
    bounds = bounds_of(runs)
    if bounds is not None:
        solver, rounds = runs[0].run.setting.solver, int(bounds["rounds"])
        print(
            f"{solver}: the best choice is proven in {bounds['proven']} of"
            f" {count_text(rounds, 'round')}; in each, the gap to the best choice is"
            f" at most {bounds['largest_gap']:.2%}.\nThis does not cover several rounds"
            " together."
        )


def _print_sizes(timed: Timed) -> None:
    counts = {**timed.run.by_size(), "all": timed.run.total()}
    table = _table("SIZE", "ASKED", "ACCEPTED", "OF REQUESTS", "OF UTILITY")
    for name, one in counts.items():
        table.add_row(
            name,
            f"{one.requested:,}",
            f"{one.accepted:,}",
            _requests(one),
            _utility(one),
        )
    print_table(table)


def _print_beside(timed: Sequence[Timed]) -> None:
    sizes = [size.upper() for size in timed[0].run.by_size()]
    table = _table("SOLVER", "OF UTILITY", "RATIO", "OF REQUESTS", *sizes, "CPU")
    for one in timed:
        total = one.run.total()
        table.add_row(
            one.run.setting.solver,
            _utility(total),
            _ratio(utility_of(one), utility_of(timed[0])),
            _requests(total),
            *(_requests(count) for count in one.run.by_size().values()),
            f"{one.total().cpu:.2f} s",
        )
    print_table(table)
    print(
        f"\nRatios are to {timed[0].run.setting.solver}; {', '.join(sizes)}: of the"
        " requests of a size."
    )


def _print_solvers(timed: Mapping[str, Sequence[Timed]]) -> None:
    first = next(iter(timed.values()))
    titles = ("OF UTILITY", "RATIO", "OF REQUESTS", "RATIO", "CPU")
    table = _table("SOLVER", *titles)
    for name, runs in timed.items():
        cells: list[str] = []
        for of in (utility_of, requests_of):
            values = [of(one) for one in runs]
            mean = fmean(values)
            cells += [_spread(values), _ratio(mean, fmean([of(one) for one in first]))]
        table.add_row(name, *cells, f"{fmean(one.total().cpu for one in runs):.2f} s")
    print_table(table)


def _table(first: str, *rest: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for title in rest:
        table.add_column(title, justify="right")
    return table


# --- text -----------------------------------------------------------------------------


def _setting_text(setting: Setting) -> str:
    from modicum.accounting.budgets import budget_text
    from modicum.accounting.filters.unlock_schedule import Unlocking

    schedule = setting.schedule
    if isinstance(schedule, Unlocking):
        unlocked = f"slack {number_text(schedule.slack)}"
    else:
        unlocked = "unlocked at once"
    parts = [
        f"{budget_text(setting.budget)} by filter {setting.filter}",
        f"prices {setting.pricing}",
        f"{count_text(schedule.rounds, 'group')} active",
        unlocked,
    ]
    if setting.attempts > 1:
        parts.append(f"{setting.attempts} attempts")
    return ", ".join(parts) + _charged_text(setting)


def _charged_text(setting: Setting) -> str:
    if setting.blocks:
        return "; blocks of users (user-parallel composition)"
    without = [
        word
        for word, there in (
            ("partitioning", setting.partitioning),
            ("subsampling", setting.subsampling),
        )
        if not there
    ]
    return f"; without {' and '.join(without)}" if without else ""


def _times_text(timed: Timed, engine: ChosenEngine) -> str:
    steps = ", ".join(f"{name} {timed.step(name).cpu:.2f}" for name in STEPS)
    total = timed.total()
    before = ""
    if timed.warm_up is not None:
        before = f"; before that, {timed.warm_up.cpu:.2f} s to load the compiled loops"
    return (
        f"{total.cpu:.2f} s of CPU ({steps}), {total.wall:.2f} s in all,"
        f" with {engine.name}{before}"
    )


def _over(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return " of one seed"
    return f" over {len(seeds)} seeds, ± the standard deviation"


def _utility(count: Count) -> str:
    return f"{float(count.utility_fraction):.2%}"


def _requests(count: Count) -> str:
    return f"{float(count.requests_fraction):.2%}"


def _spread(values: Sequence[float]) -> str:
    mean = f"{fmean(values):.2%}"
    return f"{mean} ± {stdev(values):.2%}" if len(values) > 1 else mean


def _ratio(mean: float, first: float) -> str:
    found = ratio(mean, first)
    return "-" if found is None else f"{found:.2f}"

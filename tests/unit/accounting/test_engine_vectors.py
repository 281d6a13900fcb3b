"""The published vectors of groups and of joint losses, copied as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from oracle.accounting import MP, real

from modicum.accounting import INFINITE
from modicum.accounting.conversions.epsilon_delta import best_epsilon
from modicum.accounting.curves import Curve
from modicum.accounting.grid import EPS, MU2, RHO
from modicum.accounting.group_privacy import chained, doubled, group
from modicum.accounting.losses import total_of
from modicum.accounting.mechanisms import (
    declared_gdp,
    declared_pure,
    declared_zcdp,
    gaussian,
    laplace,
)
from modicum.accounting.neighborhoods.cells import columns
from modicum.accounting.neighborhoods.entries import (
    Entry,
    Native,
    Relation,
    UserPer,
)
from modicum.accounting.neighborhoods.joint_loss import Engine
from modicum.accounting.neighborhoods.line_sweep import Line, deepest, worst_pair
from modicum.accounting.neighborhoods.records import (
    membership,
    worst_cell,
    worst_pair_of_cells,
)
from modicum.accounting.neighborhoods.regions import (
    CategoryAxis,
    NumericAxis,
    Region,
    Span,
    segments,
)
from modicum.accounting.neighborhoods.target import (
    AddRemove,
    Attributes,
    Metric,
    Point,
    Substitute,
    Target,
    Users,
)
from modicum.accounting.neighborhoods.user_days import Demand, costliest_days
from modicum.core.errors import InputError

FILE = Path(__file__).parents[2] / "golden" / "theory_vectors_engine.json"
VECTORS: dict[str, dict[str, Any]] = json.loads(FILE.read_text())


def cases(name: str, part: str = "engine") -> list[Any]:
    found = VECTORS[part][name]["cases"]
    assert found
    return [pytest.param(case, id=f"{name}-{n}") for n, case in enumerate(found)]


def exact(number: float | str) -> Fraction:
    return Fraction(str(number))


def units(number: float | str) -> int:
    if number == "inf":
        return INFINITE
    scaled = exact(number) * 10**12
    assert scaled.denominator == 1
    return scaled.numerator


def within_float(found: int, number: float) -> bool:
    """The vectors are the nearest floats of sums; ours is exact, so never below."""
    truth = exact(number) * 10**12
    return (
        truth * (1 - Fraction(1, 10**14)) <= found <= truth * (1 + Fraction(1, 10**9))
    )


# --- joint losses ------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("interval_engine"))
def test_intervals(case: dict[str, Any]) -> None:
    rows = case["intervals"]
    low, high = case["domain"]
    line = Line(high - low, tuple((a, b, n) for n, (a, b, _, _) in enumerate(rows)))
    u = [units(row[2]) for row in rows]
    b = [units(row[3]) for row in rows]
    assert deepest(line, u)[0] == units(case["unbounded"])
    assert worst_pair(line, u, b).cost == units(case["bounded"])
    demands = [
        Demand(((a, end),), (0, cost))
        for (a, end, _, _), cost in zip(rows, u, strict=True)
    ]
    covered = costliest_days(demands, case["K"])
    assert covered.exact
    assert covered.cost == units(case["kcover"])
    everything = sum(max(pair) for pair in zip(u, b, strict=True))
    assert everything == units(case["sequential"])


@pytest.mark.parametrize("case", cases("box_engine"))
def test_boxes(case: dict[str, Any]) -> None:
    whole = Span(Fraction(0), Fraction(10))
    regions: list[Region] = [
        (
            {
                "x": Span(Fraction(x0), Fraction(x1)),
                "y": Span(Fraction(y0), Fraction(y1)),
            },
        )
        for x0, x1, y0, y1, _, _ in case["boxes"]
    ]
    axes = [segments(NumericAxis(name, whole), regions) for name in ("x", "y")]
    found = columns(axes, regions, frozenset({"x", "y"}), at_most=10**6)
    assert found is not None
    assert len(found) == 1
    assert len(found[0].cells) == case["n_signatures"]
    held = membership(found[0].cells, len(regions))
    u, b = [units(r[4]) for r in case["boxes"]], [units(r[5]) for r in case["boxes"]]
    assert worst_cell(held, u)[0] == units(case["unbounded"])
    pair = worst_pair_of_cells(held, u, b, at_most=10**9)
    assert pair is not None
    assert pair.cost == units(case["bounded"])


def partitioned(curves: Sequence[Curve], native: Native, stay: Curve | None) -> Any:
    cells = tuple(str(number) for number in range(len(curves)))
    entries = [
        Entry(cell, curve, ({"cell": frozenset({cell})},), None, native, stay)
        for cell, curve in zip(cells, curves, strict=True)
    ]
    return entries, [CategoryAxis("cell", cells)]


KINDS: Mapping[str, tuple[Native, Curve | None]] = {
    "native_bounded": (Native(Relation.SUBSTITUTE), None),
    "native_unbounded": (Native(Relation.ADD_REMOVE), None),
    "count": (Native(Relation.ADD_REMOVE), declared_pure(eps=Fraction(0))),
}


@pytest.mark.parametrize("case", cases("partition_parallel"))
def test_a_partition(case: dict[str, Any]) -> None:
    native, stay = KINDS[case["kind"]]
    curves = [declared_pure(eps=exact(eps)) for eps in case["eps"]]
    entries, axes = partitioned(curves, native, stay)
    bounded = Engine(entries, axes, Substitute()).worst(EPS).units
    assert within_float(bounded, case["bounded"]) or case["bounded"] == bounded
    unbounded = Engine(entries, axes, AddRemove()).worst(EPS).units
    if len(curves) == 1 and case["kind"] == "native_bounded":
        # The cell is everything: nothing is proven for a record that comes or goes.
        assert unbounded == INFINITE
    else:
        assert unbounded == units(case["unbounded"])
    everywhere = [Entry(e.id, e.curve) for e in entries]
    sequential = Engine(everywhere, [], AddRemove()).worst(EPS).units
    assert within_float(sequential, case["sequential"])


@pytest.mark.parametrize("case", cases("partition_parallel_local"))
def test_a_partition_whose_cell_sizes_are_public(case: dict[str, Any]) -> None:
    curves = [declared_pure(eps=exact(eps)) for eps in case["eps"]]
    native = Native(Relation.SUBSTITUTE, size_public=True)
    entries, axes = partitioned(curves, native, None)
    assert Engine(entries, axes, Substitute()).worst(EPS).units == units(
        case["bounded"]
    )
    assert Engine(entries, axes, AddRemove()).worst(EPS).units == units(
        case["unbounded"]
    )


@pytest.mark.parametrize("case", cases("partition_parallel_zcdp"))
def test_a_partition_in_zcdp(case: dict[str, Any]) -> None:
    curves = [declared_zcdp(rho=exact(rho)) for rho in case["rho"]]
    for relation, key in (
        ("substitute", "native_bounded"),
        ("add-remove", "native_unbounded"),
    ):
        entries, axes = partitioned(curves, Native(Relation(relation)), None)
        assert Engine(entries, axes, Substitute()).worst(RHO).units == units(case[key])
        assert Engine(entries, axes, AddRemove()).worst(RHO).units == units(
            case["unbounded"]
        )


@pytest.mark.parametrize("case", cases("partition_parallel_gdp"))
def test_a_partition_in_gdp(case: dict[str, Any]) -> None:
    curves = [declared_gdp(mu=exact(mu)) for mu in case["mu"]]
    for relation, key in (
        ("substitute", "native_bounded"),
        ("add-remove", "native_unbounded"),
    ):
        entries, axes = partitioned(curves, Native(Relation(relation)), None)
        found = Engine(entries, axes, Substitute()).worst(MU2).units
        truth = exact(case[key]) ** 2 * 10**12
        assert abs(found - truth) <= 1


@pytest.mark.parametrize("case", cases("partition_parallel_approx"))
def test_a_partition_in_approximate_dp_keeps_pairs_together(
    case: dict[str, Any],
) -> None:
    """Which pair of cells is worst depends on delta: the maxima are not one pair."""
    parameters = [(exact(eps), exact(delta)) for eps, delta in case["params"]]
    curves = [declared_pure(eps=eps, delta=delta) for eps, delta in parameters]
    entries, axes = partitioned(curves, Native(Relation.SUBSTITUTE), None)
    engine = Engine(entries, axes, Substitute())
    for delta in (Fraction(1, 10**3), Fraction(12, 10**6), Fraction(2, 10**6)):
        truth = max(
            best_epsilon(total_of([a.loss(), b.loss()]), delta).units
            for a, b in combinations(curves, 2)
        )
        assert engine.epsilon(delta).units == truth
    # Without slack, only basic composition is left: the sums of the pairs.
    [largest] = case["pareto_bounded"]
    assert engine.epsilon(exact(largest[1])).units == units(largest[0])
    assert engine.worst(EPS).units == units(largest[0])
    sums = {(a[0] + b[0], a[1] + b[1]) for a, b in combinations(parameters, 2)}
    assert sums == {(exact(eps), exact(delta)) for eps, delta in case["pairs"]}


@pytest.mark.parametrize("case", cases("rr_bruteforce"))
def test_parallel_randomized_responses_reach_the_bound(case: dict[str, Any]) -> None:
    """The exact ratio of probabilities, by enumeration, is what the engine says."""
    every = [exact(eps) for eps in case["eps"]]

    def probability(answers: Iterable[int], cell: int | None) -> Any:
        found = MP.mpf(1)
        for number, (eps, answer) in enumerate(zip(every, answers, strict=True)):
            truth = 1 / (1 + MP.exp(-real(eps)))
            found *= truth if answer == (number == cell) else 1 - truth
        return found

    def largest(pairs: Iterable[tuple[int | None, int | None]]) -> Any:
        return max(
            MP.log(probability(answers, a) / probability(answers, b))
            for answers in product((0, 1), repeat=len(every))
            for a, b in pairs
        )

    cells = range(len(every))
    curves = [declared_pure(eps=eps) for eps in every]
    entries, axes = partitioned(curves, Native(Relation.SUBSTITUTE), None)
    bounded = Engine(entries, axes, Substitute()).worst(EPS).units
    unbounded = Engine(entries, axes, AddRemove()).worst(EPS).units
    pairs = [(a, b) for a in cells for b in cells]
    assert abs(largest(pairs) * 10**12 - bounded) < 1e-20
    assert abs(largest([(a, None) for a in cells]) * 10**12 - unbounded) < 1e-20
    assert within_float(bounded, case["bounded"])


@pytest.mark.parametrize("case", cases("user_k_days_pure"))
def test_a_user_active_on_a_few_days(case: dict[str, Any]) -> None:
    native = Native(Relation.ADD_REMOVE, UserPer("day", Fraction(1)))
    axis = NumericAxis("day", Span(Fraction(0), Fraction(len(case["eps"]))))
    entries = [
        Entry(
            str(day),
            declared_pure(eps=exact(eps)),
            ({"day": Span(Fraction(day), Fraction(day + 1))},),
            None,
            native,
        )
        for day, eps in enumerate(case["eps"])
    ]
    found = Engine(entries, [axis], Users("day", at_most=case["k"])).worst(EPS)
    assert found.exact
    assert found.units == units(case["eps_user"])


@pytest.mark.parametrize("case", cases("user_k_days_windows_zcdp"))
def test_a_user_active_on_a_few_days_of_some_windows(case: dict[str, Any]) -> None:
    native = Native(Relation.ADD_REMOVE, UserPer("day", Fraction(1)))
    entries, start = [], 0
    for rho, length in zip(case["rho"], case["lens"], strict=True):
        span = Span(Fraction(start), Fraction(start + length))
        entries.append(
            Entry(
                str(start),
                declared_zcdp(rho=exact(rho)),
                ({"day": span},),
                None,
                native,
            )
        )
        start += length
    axis = NumericAxis("day", Span(Fraction(0), Fraction(start)))
    found = Engine(entries, [axis], Users("day", at_most=case["K"])).worst(RHO)
    assert found.exact
    assert found.units == units(case["rho_user"])
    assert Engine(entries, [axis], AddRemove()).worst(RHO).units == 2**2 * units(
        case["rho_event"]
    ), "one row more is two changes of a whole user-day"
    days = tuple(Span(Fraction(day), Fraction(day + 1)) for day in range(start))
    per_day = Engine(entries, [axis], Users("day", windows=days)).worst(RHO)
    assert per_day.units == units(case["rho_event"])


@pytest.mark.parametrize("case", cases("attribute_engine"))
def test_attributes(case: dict[str, Any]) -> None:
    entries = [
        Entry(
            str(number),
            declared_pure(eps=exact(mechanism["eps"])),
            reads=frozenset(mechanism["reads"]),
            native=Native(Relation.SUBSTITUTE),
        )
        for number, mechanism in enumerate(case["mechs"])
    ]
    found = Engine(entries, [], Attributes(case["t"])).worst(EPS)
    assert found.units == units(case["eps"])
    if case["t"] == 1:
        assert list(found.move.changed) == case["argmax"]


@pytest.mark.parametrize("case", cases("attribute_partition"))
def test_attributes_that_are_also_an_axis(case: dict[str, Any]) -> None:
    native = Native(Relation.SUBSTITUTE)
    axis = CategoryAxis("zip", ("a", "b"))

    def entry(eps: str, reads: str, where: Region) -> Entry:
        return Entry(
            eps, declared_pure(eps=Fraction(eps)), where, frozenset({reads}), native
        )

    entries = [
        entry("0.5", "age", ({"zip": frozenset({"a"})},)),
        entry("0.7", "age", ({"zip": frozenset({"b"})},)),
        entry("0.4", "diag", ({},)),
    ]

    def joint(target: Target) -> int:
        return Engine(entries, [axis], target).worst(EPS).units

    assert joint(Attributes(1)) == units(case["eps_attribute"])
    assert joint(Attributes(1, frozenset({"age"}))) == units(case["eps_age_only"])
    assert joint(Attributes(1, frozenset({"diag"}))) == units(case["eps_label_diag"])
    assert joint(Substitute()) == units(case["eps_bounded"])


@pytest.mark.parametrize("case", cases("f_dependency_zero"))
def test_what_a_filter_does_not_show_costs_nothing(case: dict[str, Any]) -> None:
    axis = NumericAxis("age", Span(Fraction(0), Fraction(100)))
    minors = Entry(
        "minors",
        declared_pure(eps=Fraction(1)),
        ({"age": Span(Fraction(0), Fraction(18))},),
    )
    grown_up: tuple[Point, Point] = ({"age": Fraction(40)}, {"age": Fraction(50)})
    target = Metric(grown_up, lambda a, b: Fraction(10))
    assert Engine([minors], [axis], target).worst(EPS).units == units(case["cost"])
    assert Engine([minors], [axis], AddRemove()).worst(EPS).units == units(1)


@pytest.mark.parametrize("case", cases("f_dependency_upgrade"))
def test_substitution_also_covers_removal_where_a_record_can_lie_outside(
    case: dict[str, Any],
) -> None:
    curves = [declared_pure(eps=exact(case["eps"]))]
    axis = CategoryAxis("cell", ("in", "out"))
    native = Native(Relation.SUBSTITUTE)
    inside = Entry("cell", curves[0], ({"cell": frozenset({"in"})},), None, native)
    everything = Entry("all", curves[0], native=native)
    split = ({"cell": frozenset({"in"})}, {"cell": frozenset({"out"})})
    in_two_boxes = Entry("both", curves[0], split, None, native)

    def joint(entry: Entry) -> int:
        return Engine([entry], [axis], AddRemove()).worst(EPS).units

    assert joint(inside) == units(case["addremove_cell"])
    assert joint(everything) == units(case["addremove_whole"])
    assert joint(in_two_boxes) == units(case["addremove_whole"])


def test_every_engine_vector_that_was_copied_is_tested() -> None:
    source = Path(__file__).read_text()
    elsewhere = {"poisson_substitute_no_amplification"}  # See test_amplification.py.
    for part in ("engine", "conversions"):
        for name in VECTORS[part]:
            assert f'"{name}"' in source or name in elsewhere, name


# --- groups ------------------------------------------------------------------------


def given(case: Mapping[str, Any]) -> dict[str, Any]:
    inputs: dict[str, Any] = case["in"]
    return inputs


def rounded_up(found: int, out: str) -> bool:
    truth = Fraction(out) * 10**12
    return truth - Fraction(1, 100) <= found <= truth + 1 + truth / 10**9


@pytest.mark.parametrize("case", cases("group_pure", "conversions"))
def test_group_of_a_pure_mechanism(case: dict[str, Any]) -> None:
    curve = group(declared_pure(eps=exact(given(case)["eps"])), given(case)["k"])
    assert rounded_up(curve.loss().coordinates[EPS], case["out_str"])


@pytest.mark.parametrize("case", cases("group_approx_delta", "conversions"))
def test_group_of_an_approximate_mechanism(case: dict[str, Any]) -> None:
    eps, delta, size = (given(case)[key] for key in ("eps", "delta", "k"))
    curve = group(declared_pure(eps=exact(eps), delta=exact(delta)), size)
    assert Fraction(case["out_str"]) * (1 - Fraction(1, 10**15)) <= curve.delta
    assert curve.delta <= Fraction(case["out_str"]) * (1 + Fraction(1, 10**9))
    assert curve.eps == size * exact(eps)


@pytest.mark.parametrize("case", cases("group_zcdp", "conversions"))
def test_group_in_zcdp(case: dict[str, Any]) -> None:
    curve = group(declared_zcdp(rho=exact(given(case)["rho"])), given(case)["k"])
    assert rounded_up(curve.loss().coordinates[RHO], case["out_str"])


@pytest.mark.parametrize("case", cases("path_zcdp_mixed", "conversions"))
def test_a_path_of_different_steps_in_zcdp(case: dict[str, Any]) -> None:
    found = Fraction(chained([exact(rho) for rho in given(case)["rhos"]]))
    assert abs(found / Fraction(case["out_str"]) - 1) < Fraction(1, 10**15)


@pytest.mark.parametrize("case", cases("group_gdp", "conversions"))
def test_group_in_gdp(case: dict[str, Any]) -> None:
    curve = group(declared_gdp(mu=exact(given(case)["mu"])), given(case)["k"])
    assert curve.mu2 == Fraction(case["out_str"]) ** 2


@pytest.mark.parametrize("case", cases("group_rdp_mironov", "conversions"))
def test_group_of_one_divergence(case: dict[str, Any]) -> None:
    r, alpha, c = (given(case)[key] for key in ("r", "alpha", "c"))
    assert doubled(Fraction(alpha), exact(r), c) == (
        exact(given(case)["alpha_out"]),
        exact(case["out"]),
    )


def test_nothing_follows_for_a_group_from_an_order_that_is_too_low() -> None:
    for order, doublings in ((Fraction(399, 100), 1), (Fraction(8), 3), (8, -1)):
        with pytest.raises(InputError, match="order must be at least"):
            doubled(Fraction(order), Fraction(1), doublings)
    assert doubled(Fraction(16), Fraction(1), 3) == (Fraction(2), Fraction(27))


@pytest.mark.parametrize("case", cases("group_rdp_holder2", "conversions"))
def test_group_of_two_by_hoelder(case: dict[str, Any]) -> None:
    """The vectors searched a finite range; the limit of the split is a little less."""
    base, parameter = given(case)["base"], exact(given(case)["param"])
    curve = {
        "gaussian": lambda: gaussian(rho=1 / (2 * parameter**2)),
        "laplace": lambda: laplace(sensitivity_l1=parameter, scale=Fraction(1)),
        "pure": lambda: declared_pure(eps=parameter),
    }[base]()
    found = Fraction(group(curve, 2).at(exact(given(case)["alpha"])))
    truth = Fraction(case["out_str"])
    assert truth * (1 - Fraction(2, 10**5)) <= found <= truth * (1 + Fraction(1, 10**6))


# --- converting before the maximum ---------------------------------------------------


@pytest.mark.parametrize("case", cases("minimax_gap", "conversions"))
def test_moves_are_converted_before_the_maximum(case: dict[str, Any]) -> None:
    def curve(kind: str, text: str) -> Curve:
        number = Fraction(text)
        return {
            "laplace": lambda: laplace(sensitivity_l1=number, scale=Fraction(1)),
            "pure": lambda: declared_pure(eps=number),
            "gaussian": lambda: gaussian(rho=1 / (2 * number**2)),
        }[kind]()

    values = given(case)
    curves = [curve(*values["move1"]), curve(*values["move2"])]
    entries, axes = partitioned(curves, Native(), None)
    found = Engine(entries, axes, AddRemove()).epsilon(exact(values["delta"]))
    assert found.exact
    # Their orders and conversion are not ours, which may be tighter, never than exact.
    assert found.units <= Fraction(case["out_str"]) * 10**12 * (1 + Fraction(2, 100))
    assert found.units < exact(values["naive"]) * 10**12

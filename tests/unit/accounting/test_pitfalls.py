"""Known ways to be wrong about composition, each ruled out by a test of its name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pytest
from oracle.accounting import MP, real

from modicum.accounting import INFINITE, Total
from modicum.accounting.amplification import poisson, poisson_substitute, shared_sample
from modicum.accounting.conversions.epsilon_delta import best_epsilon
from modicum.accounting.curves import Curve
from modicum.accounting.grid import DELTA, EPS, MU2, RHO, order_index
from modicum.accounting.group_privacy import group
from modicum.accounting.losses import total_of
from modicum.accounting.mechanisms import (
    declared_gdp,
    declared_pure,
    declared_zcdp,
    gaussian,
    laplace,
)
from modicum.accounting.neighborhoods.entries import (
    Draw,
    Entry,
    Native,
    Part,
    Relation,
    RowBound,
    UserPer,
    on_sample,
)
from modicum.accounting.neighborhoods.joint_loss import Engine
from modicum.accounting.neighborhoods.regions import (
    CategoryAxis,
    NumericAxis,
    Region,
    Span,
    checked,
)
from modicum.accounting.neighborhoods.target import (
    AddRemove,
    Attributes,
    Group,
    Metric,
    Point,
    Substitute,
    Target,
    Users,
)
from modicum.core.errors import InputError

ONE = Fraction(1)
UNIT = 10**12
DAY = NumericAxis("day", Span(Fraction(0), Fraction(31)))
AREA = CategoryAxis("area", ("north", "south"))
WHOLE_USER = Native(Relation.ADD_REMOVE, Part.USER)
WHOLE_DAY = Native(Relation.ADD_REMOVE, UserPer("day", ONE))
ANY_OF_A_DAY = Native(Relation.ANY, UserPer("day", ONE))
DAYS = tuple(Span(Fraction(day), Fraction(day + 1)) for day in range(31))


def pure(eps: str | Fraction) -> Curve:
    return declared_pure(eps=Fraction(eps))


def in_area(area: str) -> Region:
    return ({"area": frozenset({area})},)


def on_day(day: int) -> Region:
    return ({"day": Span(Fraction(day), Fraction(day + 1))},)


def joint(entries: Sequence[Entry], target: Target, index: int = EPS) -> int:
    return Engine(entries, [DAY, AREA], target).worst(index).units


# --- neighbors and cells -----------------------------------------------------------


def test_pitfall_1_the_maximum_over_cells_is_no_bound_under_substitution() -> None:
    """Pairs of cells count, and 2 eps within one cell may be more than any pair."""
    cells = [
        Entry("n", pure("1"), in_area("north")),
        Entry("s", pure("0.25"), in_area("south")),
    ]
    assert joint(cells, AddRemove()) == UNIT
    assert joint(cells, Substitute()) == 2 * UNIT, "more than the pair's 1.25"
    native = Native(Relation.SUBSTITUTE)
    proven = [Entry(e.id, e.curve, e.region, None, native) for e in cells]
    assert joint(proven, Substitute()) == UNIT * 5 // 4, "more than the largest cell"


def test_pitfall_2_a_public_cell_size_costs_infinity_between_cells() -> None:
    native = Native(Relation.SUBSTITUTE, size_public=True)
    mean = Entry("mean", pure("0.1"), in_area("north"), None, native)
    assert joint([mean], Substitute()) == INFINITE
    assert joint([mean], AddRemove()) == INFINITE
    income = Attributes(1, frozenset({"income"}))
    assert joint([mean], income) == UNIT // 10, "no record changes its cell"


def test_pitfall_3_numbers_for_different_neighbors_never_add_up_unconverted() -> None:
    entries = [
        Entry("a", pure("1"), native=Native(Relation.ADD_REMOVE)),
        Entry("b", pure("1"), native=Native(Relation.SUBSTITUTE)),
        Entry("c", pure("1"), native=WHOLE_USER),
    ]
    assert joint(entries, Substitute()) == (2 + 1 + 4) * UNIT
    assert joint(entries, AddRemove()) == INFINITE, "substitution says nothing of it"
    assert joint([entries[0], entries[2]], AddRemove()) == (1 + 2) * UNIT


def test_pitfall_5_moves_are_converted_each_by_its_own_order() -> None:
    delta = Fraction(1, 10**5)
    curves = [
        laplace(sensitivity_l1=Fraction(2), scale=ONE),
        gaussian(rho=Fraction(1, 8)),
    ]
    cells = [
        Entry("n", curves[0], in_area("north")),
        Entry("s", curves[1], in_area("south")),
    ]
    engine = Engine(cells, [AREA], AddRemove())
    own = [best_epsilon(total_of([c.loss()]), delta).units for c in curves]
    found = engine.epsilon(delta)
    assert found.units == max(own)
    # One order for both: sound and loose. The best order of one move: not sound.
    of_maxima = best_epsilon(Total().plus(engine.loss()), delta)
    assert found.units < of_maxima.units


def test_pitfall_6_epsilon_and_delta_of_two_moves_are_never_mixed() -> None:
    """A large eps without delta beside a small eps with a large delta."""
    cells = [
        Entry("n", pure("2"), in_area("north")),
        Entry("s", declared_pure(eps=ONE, delta=Fraction(1, 100)), in_area("south")),
    ]
    engine = Engine(cells, [AREA], AddRemove())
    assert engine.epsilon(Fraction(1, 10**6)).units == INFINITE, "delta does not fit"
    assert engine.epsilon(Fraction(1, 50)).units <= 2 * UNIT
    assert engine.loss().coordinates[DELTA] == 10**16


def test_pitfall_7_regions_are_values_of_axes_declared_beforehand() -> None:
    """A cell that only the data define cannot be named: its value is unknown."""
    axes = {AREA.name: AREA}
    with pytest.raises(InputError, match="no value `seen-in-data`"):
        checked(({"area": frozenset({"seen-in-data"})},), axes)
    with pytest.raises(InputError, match="unknown axis `cluster`"):
        checked(({"cluster": frozenset({"1"})},), axes)


def test_pitfall_8_a_late_record_leaves_one_window_and_enters_another() -> None:
    weeks: list[Region] = [
        ({"day": Span(Fraction(7 * week), Fraction(7 * week + 7))},) for week in (0, 1)
    ]
    entries = [
        Entry(str(number), pure("0.5"), where, frozenset(), Native())
        for number, where in enumerate(weeks)
    ]
    assert joint(entries, AddRemove()) == UNIT // 2
    arrives_late = Attributes(1, frozenset({"day"}))
    assert joint(entries, arrives_late) == UNIT, "u of both windows"


def test_pitfall_9_a_record_in_several_cells_is_charged_in_each() -> None:
    """Overlapping regions, as tags or joins make them, add up."""
    tags = [
        Entry("cough", pure("0.5"), ({},)),
        Entry("fever", pure("0.5"), ({},)),
    ]
    assert joint(tags, AddRemove()) == UNIT
    joined = Entry("join", pure("0.5"), native=Native(), rows=RowBound(rows=3))
    assert joint([joined], Users()) == UNIT * 3 // 2, "stability before cost"


def test_pitfall_10_without_an_enforced_bound_nothing_is_said_of_users() -> None:
    per_row = Entry("r", pure("0.1"), on_day(3))
    per_day = Entry("d", pure("0.1"), native=WHOLE_DAY)
    assert joint([per_row], Users("day", at_most=2)) == INFINITE
    bounded = Entry("r", pure("0.1"), on_day(3), rows=RowBound(2))
    assert joint([bounded], Users()) == UNIT // 5
    assert joint([per_day], Users("day")) == UNIT * 31 // 10, "every day of the axis"
    assert joint([per_day], Users("day", at_most=2)) == UNIT // 5
    elsewhere = Entry(
        "d", pure("0.1"), native=Native(Relation.ANY, UserPer("week", ONE))
    )
    assert joint([elsewhere], Users("day")) == INFINITE


def test_pitfall_11_a_group_is_priced_before_the_conversion_to_epsilon() -> None:
    delta, size = Fraction(1, 10**6), 3
    curve = gaussian(rho=Fraction(1, 20))
    before = best_epsilon(total_of([group(curve, size).loss()]), delta).units
    # Afterwards, k eps costs a delta inflated by 1 + e^eps + e^(2 eps).
    own, single = Fraction(delta), 0
    for _ in range(20):
        single = best_epsilon(total_of([curve.loss()]), own).units
        growth = sum(MP.exp(MP.mpf(step * single) / UNIT) for step in range(size))
        own = delta / Fraction(str(growth))
    assert before < size * single
    approximate = group(declared_pure(eps=ONE, delta=Fraction(1, 10**5)), 4)
    assert approximate.delta > Fraction(30, 10**5)
    assert group(declared_pure(eps=ONE, delta=Fraction(1, 10**5)), 40).delta == 1


@pytest.mark.spec("ACC-8")
def test_pitfall_12_renyi_groups_take_higher_orders_of_the_curve() -> None:
    """Scaling r(alpha) by k, or by k squared, at the same order is not sound."""
    curve = laplace(sensitivity_l1=ONE, scale=ONE)
    for order in (Fraction(2), Fraction(8)):
        doubled = laplace(sensitivity_l1=Fraction(2), scale=ONE)
        truth = doubled.at(order)
        assert group(curve, 2).at(order) >= truth
        assert 2 * curve.at(order) < truth, "k times is too little"
    saturated = Fraction(1024)
    assert group(curve, 2).at(saturated) <= 2
    assert 4 * curve.at(saturated) > 2, "and k squared is needlessly much"


@pytest.mark.spec("ACC-14")
def test_pitfall_13_one_sample_is_composed_first_and_amplified_once() -> None:
    rate = Fraction(1, 100)
    parts = [Entry(str(n), pure("1")) for n in range(4)]
    once = on_sample(parts, Draw("monday", rate)).curve.loss().coordinates[EPS]
    apart = 4 * poisson(pure("1"), sampling_rate=rate).loss().coordinates[EPS]
    truth = MP.log(1 + real(rate) * (MP.exp(4) - 1)) * UNIT
    assert truth <= once <= truth + 1
    assert once > 6 * apart, "amplifying each would understate it"
    same = shared_sample([(pure("1"), 4)], sampling_rate=rate)
    assert same.loss().coordinates[EPS] == once


def test_pitfall_13_a_sample_amplifies_only_what_is_proven_for_its_unit() -> None:
    for native in (Native(Relation.SUBSTITUTE), WHOLE_USER):
        entry = Entry("e", pure("1"), native=native)
        with pytest.raises(InputError, match="not proven for adding or removing"):
            on_sample([entry], Draw("monday", Fraction(1, 100)))


def test_pitfall_23_swaps_that_keep_an_invariant_cost_both_records() -> None:
    """With exact totals published, neighbors swap two records: two substitutions."""
    entry = Entry("counts", pure("0.5"), native=Native(Relation.SUBSTITUTE))
    assert joint([entry], Group(2, Substitute())) == UNIT


def test_pitfall_25_a_sum_with_other_mechanisms_is_not_gaussian_any_more() -> None:
    """mu is finite only while every part is known to be GDP."""
    gaussians = [gaussian(rho=Fraction(1, 10)).loss()] * 2
    assert total_of(gaussians).units(MU2) == UNIT * 4 // 10
    mixed = total_of([*gaussians, declared_zcdp(rho=Fraction(1, 10)).loss()])
    assert mixed.units(MU2) == INFINITE
    assert mixed.units(RHO) == UNIT * 3 // 10


# --- the traps of cells, units and samples -----------------------------------------


def histogram_of_active_days() -> Entry:
    """For each number of active days, how many users have it: one cell per user."""
    return Entry("histogram", pure("1"), native=WHOLE_USER)


def test_a_whole_user_loss_does_not_bound_the_loss_of_a_user_day() -> None:
    """One day more moves a user from one cell of the histogram to another.

    Counts with Laplace noise of scale 1: adding a user changes one count by 1, one
    day more changes two. The exact ratio of the outcomes is e^2.
    """
    entry = histogram_of_active_days()
    assert joint([entry], Users()) == UNIT, "the user there or not"
    per_day = Users("day", windows=DAYS)
    assert joint([entry], per_day) == 2 * UNIT, "a day there or not"
    assert joint([entry], Users(change=Relation.ANY)) == 2 * UNIT
    any_change = Entry("any", pure("1"), native=Native(Relation.ANY, Part.USER))
    assert joint([any_change], per_day) == UNIT


def test_amplifying_a_draw_of_users_for_one_of_their_days() -> None:
    """q = 0.01, Laplace of 0.1 per user-day, 31 days: .01758, and not .00105.

    Whether the user is in the sample shows on all the other days as well.
    """
    rate, per_day = Fraction(1, 100), Fraction(1, 10)
    curve = poisson_substitute(
        eps_add_remove=31 * per_day, eps_substitute=per_day, sampling_rate=rate
    )
    found = MP.mpf(str(curve.eps))
    assert MP.nstr(found, 4) == "0.01758"
    naive = MP.log(1 + real(rate) * (MP.exp(real(per_day)) - 1))
    assert MP.nstr(naive, 3) == "0.00105"

    # The exact worst case: 31 sums, where 30 days' noise betrays the draw.
    others, own = MP.exp(real(30 * per_day)), MP.exp(real(per_day))
    q = real(rate)
    without, having = 1 - q + q * others, 1 - q + q * others * own
    truth = MP.log(having / without)
    assert truth * UNIT <= curve.loss().coordinates[EPS] <= truth * UNIT + 1
    assert truth > 16 * naive


def test_half_the_budget_per_cell_needs_one_common_order_under_substitution() -> None:
    """Each cell within half of the budget at its own order: the pair is beyond it."""
    delta = Fraction(1, 10**6)
    pure_half = declared_pure(eps=Fraction(1, 2))
    # A Gaussian that half of eps at half of delta would just admit by its rho.
    sharp = gaussian(rho=Fraction(7, 2000))
    halves = [
        best_epsilon(total_of([curve.loss()]), delta / 2).units
        for curve in (pure_half, sharp)
    ]
    assert max(halves) <= UNIT // 2
    native = Native(Relation.SUBSTITUTE)
    cells = [
        Entry("n", pure_half, in_area("north"), None, native),
        Entry("s", sharp, in_area("south"), None, native),
    ]
    engine = Engine(cells, [AREA], Substitute())
    pair = total_of([pure_half.loss(), sharp.loss()])
    for index in (EPS, MU2, RHO, order_index(Fraction(8)), order_index(Fraction(32))):
        one_cell = max(
            pure_half.loss().coordinates[index], sharp.loss().coordinates[index]
        )
        assert engine.worst(index).units == pair.units(index) > one_cell or (
            pair.units(index) == INFINITE
        )
    found = engine.epsilon(delta)
    assert found.units == best_epsilon(pair, delta).units
    assert found.units > 2 * UNIT // 4, "and more than either half"


def test_many_days_of_a_month_are_squared_once_not_twice() -> None:
    """31 daily releases cost 31 rho per user-month; one that reads 31 days, 31^2."""
    rho = Fraction(1, 1000)
    daily = [
        Entry(str(d), declared_zcdp(rho=rho), on_day(d), None, WHOLE_DAY)
        for d in range(31)
    ]
    month = Users("day", windows=(DAY.span,))
    assert joint(daily, month, RHO) == 31 * UNIT // 1000
    one = Entry("all", declared_zcdp(rho=rho), native=WHOLE_DAY)
    assert joint([one], month, RHO) == 31 * 31 * UNIT // 1000
    assert joint([one], Users("day", windows=DAYS), RHO) == UNIT // 1000


def test_a_cap_over_a_larger_unit_makes_a_smaller_change_a_substitution() -> None:
    """At most m rows of a user: where one day's rows go, others take their place."""
    capped = Entry("c", pure("0.1"), rows=RowBound(rows=5))
    assert joint([capped], Users()) == UNIT // 2, "5 rows leave"
    assert joint([capped], Users("day", windows=DAYS)) == UNIT, "5 leave, 5 enter"
    by_day = Entry("c", pure("0.1"), rows=RowBound(5, UserPer("day", ONE)))
    assert joint([by_day], Users("day", windows=DAYS)) == UNIT // 2


def test_any_change_of_a_day_covers_what_a_whole_day_does_not() -> None:
    changed = Users("day", windows=DAYS, change=Relation.ANY)
    assert joint([Entry("d", pure("1"), native=ANY_OF_A_DAY)], changed) == UNIT
    assert joint([Entry("d", pure("1"), native=WHOLE_DAY)], changed) == 2 * UNIT


def test_weeks_and_months_do_not_contain_each_other() -> None:
    """A month that cuts weeks apart changes them, it does not take them away."""
    weekly = Entry(
        "w", pure("1"), native=Native(Relation.ADD_REMOVE, UserPer("day", Fraction(7)))
    )
    month = Users("day", windows=(Span(Fraction(0), Fraction(30)),))
    assert joint([weekly], month) == 5 * 2 * UNIT, "5 weeks, each by its two versions"
    four_weeks = Users("day", windows=(Span(Fraction(0), Fraction(28)),))
    assert joint([weekly], four_weeks) == 4 * UNIT


# --- truths by enumeration ----------------------------------------------------------


def test_substituting_under_binomial_noise_reaches_twice_the_loss() -> None:
    """A count with symmetric two-sided geometric noise: leave costs eps, swap 2 eps.

    Enumerated: the ratio of outcomes when one record in a cell becomes one outside,
    and when the counts of two cells trade a record.
    """
    eps = Fraction(1, 2)
    decay = MP.exp(-real(eps))

    def mass(noise: int) -> object:
        return (1 - decay) / (1 + decay) * decay ** abs(noise)

    outcomes = range(-40, 41)
    leave = max(MP.log(mass(o) / mass(o - 1)) for o in outcomes)  # type: ignore[operator]
    both = max(
        MP.log(mass(a) * mass(b) / (mass(a - 1) * mass(b + 1)))  # type: ignore[operator]
        for a, b in itertools.product(range(-3, 4), repeat=2)
    )
    cells = [Entry(a, pure(eps), in_area(a), frozenset()) for a in AREA.values]
    assert abs(leave * UNIT - joint(cells, AddRemove())) < 1e-20
    assert abs(both * UNIT - joint(cells, Attributes(1, frozenset({"area"})))) < 1e-20


def test_gaussian_means_add_up_as_squares_over_the_cells_that_a_move_touches() -> None:
    cells = [
        Entry("n", declared_gdp(mu=Fraction(3)), in_area("north"), frozenset()),
        Entry("s", declared_gdp(mu=Fraction(4)), in_area("south"), frozenset()),
    ]
    moved = Attributes(1, frozenset({"area"}))
    assert joint(cells, moved, MU2) == 25 * UNIT


# --- what an attacker would ask for ---------------------------------------------------


def test_releases_on_one_sample_tell_together_which_region_holds_a_record() -> None:
    """Two hospitals' counts on one sample: a record that moves is seen by both."""
    parts = [
        Entry(area, pure("5"), in_area(area), frozenset({"age"}))
        for area in AREA.values
    ]
    both = on_sample(parts, Draw("s", Fraction(1, 2)))
    moved = joint([both], Attributes(1, frozenset({"area"})))
    # Without the noise of the draw, what both tell of the move is e^5 at least.
    assert moved >= 5 * UNIT
    same = on_sample([parts[0], parts[0]], Draw("s", Fraction(1, 2)))
    assert same.reads == frozenset({"age"}), (
        "one region needs no more than what is read"
    )


def test_a_short_distance_costs_more_than_its_square_where_epsilon_is_proven() -> None:
    near = Metric(({"day": Fraction(0)}, {"day": Fraction(1, 2)}), distance_of_days)
    native = Native(Relation.METRIC)
    noise = laplace(sensitivity_l1=ONE, scale=ONE)
    for curve in (noise, pure("1")):
        found = joint([Entry("e", curve, native=native)], near, RHO)
        own = laplace(sensitivity_l1=Fraction(1, 2), scale=ONE)
        assert found >= own.loss().coordinates[RHO]
        assert found == pure("0.5").loss().coordinates[RHO]
    gauss = joint([Entry("e", gaussian(rho=ONE), native=native)], near, RHO)
    assert gauss == UNIT // 4


def distance_of_days(a: Point, b: Point) -> Fraction:
    return abs(Fraction(a["day"]) - Fraction(b["day"]))


def test_any_change_may_move_a_user_from_their_days_to_as_many_others() -> None:
    days = [Entry(str(d), pure("1"), on_day(d), None, ANY_OF_A_DAY) for d in (0, 1)]
    target = Users("day", at_most=1, change=Relation.ANY)
    assert joint(days, target) == 2 * UNIT
    assert joint(days, Users("day", at_most=1)) == UNIT, "there or not: one day"


def test_unnamed_attributes_count_one_by_one() -> None:
    entry = Entry("e", pure("1"), native=Native(Relation.SUBSTITUTE, Part.ATTRIBUTE))
    assert Engine([entry], [], Attributes(3)).worst(EPS).units == 3 * UNIT


def test_a_loss_by_distance_says_nothing_of_users() -> None:
    entry = Entry("e", pure("1"), native=Native(Relation.METRIC), rows=RowBound(3))
    assert joint([entry], Users()) == INFINITE


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.ANY])
def test_a_record_that_passes_between_users_changes_public_sizes(
    relation: Relation,
) -> None:
    entry = Entry("e", pure("1"), native=Native(relation, Part.USER, size_public=True))
    assert joint([entry], Substitute()) == INFINITE


def test_attribute_steps_between_two_boxes_leave_a_region_of_public_size() -> None:
    axes = [CategoryAxis(name, ("x", "y")) for name in ("a", "b")]
    boxes: Region = tuple(
        {"a": frozenset({v}), "b": frozenset({v})} for v in ("x", "y")
    )
    native = Native(Relation.SUBSTITUTE, Part.ATTRIBUTE, size_public=True)
    entry = Entry("e", pure("1"), boxes, frozenset({"a"}), native)
    target = Attributes(2, frozenset({"a", "b"}))
    assert Engine([entry], axes, target).worst(EPS).units == INFINITE


def test_a_user_day_mechanism_notices_the_day_that_it_does_not_read() -> None:
    entry = Entry("e", pure("1"), reads=frozenset({"amount"}), native=ANY_OF_A_DAY)
    assert joint([entry], Attributes(1, frozenset({"day"}))) == 2 * UNIT


def test_a_delta_of_one_proves_nothing_at_all() -> None:
    entry = Entry("e", declared_pure(eps=ONE, delta=Fraction(3, 10)))
    assert joint([entry], Group(10, AddRemove())) == INFINITE
    assert joint([entry], AddRemove(), DELTA) == 3 * 10**17


def test_a_users_day_is_whole_to_what_reads_that_day_only() -> None:
    """Daily active users: to one day's count, a day gone is the user gone."""
    daily = Entry("d", pure("1"), on_day(3), None, WHOLE_USER)
    assert joint([daily], Users("day", windows=DAYS)) == UNIT


def test_a_move_that_cannot_be_is_not_said_to_be_attained() -> None:
    entry = Entry("n", pure("1"), in_area("north"))
    found = Engine([entry], [AREA], Attributes(1, frozenset({"area"}))).worst(EPS)
    assert found.units == 2 * UNIT
    assert not found.exact


def test_what_is_declared_of_a_record_that_stays_is_of_its_own_user() -> None:
    """The number of users: a record that becomes another user's changes it."""
    nothing = declared_pure(eps=Fraction(0))
    users = Entry("e", pure("1"), native=WHOLE_USER, stay=nothing)
    assert joint([users], Substitute()) == 4 * UNIT
    assert joint([users], Attributes(1, frozenset({"day"}))) == 0
    days = Entry("e", pure("1"), native=WHOLE_DAY, stay=nothing)
    assert joint([days], Attributes(1, frozenset({"day"}))) == 4 * UNIT
    rows = Entry("e", pure("1"), stay=nothing)
    assert joint([rows], Substitute()) == 0


def test_rows_bounded_day_by_day_notice_the_day() -> None:
    per_day = RowBound(1, UserPer("day", ONE))
    capped = Entry("e", pure("1"), reads=frozenset(), rows=per_day)
    moved = Attributes(1, frozenset({"day"}))
    assert joint([capped], moved) == 2 * UNIT
    assert joint([on_sample([capped], Draw("s", Fraction(1, 2)))], moved) > 0


def test_several_moves_are_converted_by_their_maxima() -> None:
    """In all measures together, records in two places might be worse than in one."""
    cells = [
        Entry("n", laplace(sensitivity_l1=ONE, scale=ONE), in_area("north")),
        Entry("s", gaussian(rho=Fraction(1, 8)), in_area("south")),
    ]
    delta = Fraction(1, 10**5)
    engine = Engine(cells, [AREA], Group(2, AddRemove()))
    found = engine.epsilon(delta)
    assert not found.exact
    assert found.units == best_epsilon(Total().plus(engine.loss()), delta).units

"""The composition engine against an oracle that tries every move."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from budget import examples, seed
from oracle import neighborhoods as oracle

from modicum.accounting import INFINITE, Total
from modicum.accounting.conversions.epsilon_delta import best_epsilon
from modicum.accounting.curves import UNKNOWN, Curve
from modicum.accounting.grid import EPS, MU2, RHO, order_index
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
    Entry,
    Native,
    Part,
    Relation,
    RowBound,
    Unit,
    UserPer,
)
from modicum.accounting.neighborhoods.joint_loss import Engine
from modicum.accounting.neighborhoods.records import Effort
from modicum.accounting.neighborhoods.regions import (
    Axis,
    Box,
    CategoryAxis,
    NumericAxis,
    Region,
    Span,
)
from modicum.accounting.neighborhoods.target import (
    AddRemove,
    Attributes,
    Group,
    Metric,
    Substitute,
    Target,
    Users,
)

pytestmark = pytest.mark.soak

#: `make soak` tries 2,000 instances of each target and variant.
INSTANCES = examples(200)

DELTA = Fraction(1, 10**6)
ORDER = Fraction(8)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers: the same on every plain run, of the printed seed on a soak."""
    own = f"{seed()} {request.node.name}"
    print(f"seed {own}, {INSTANCES} instances")
    return random.Random(own)


# --- random releases -------------------------------------------------------------

AGE = NumericAxis("age", Span(Fraction(0), Fraction(4)))
AREA = CategoryAxis("area", ("north", "south", "west"))


def some_axes(rng: random.Random) -> list[Axis]:
    return rng.choice([[AGE], [AREA], [AGE, AREA]])


def some_box(rng: random.Random, axes: Sequence[Axis]) -> Box:
    box: dict[str, Span | frozenset[str]] = {}
    for axis in axes:
        if rng.random() < 0.3:
            continue
        if isinstance(axis, CategoryAxis):
            chosen = rng.sample(axis.values, rng.randint(0, len(axis.values)))
            box[axis.name] = frozenset(chosen)
        else:
            low, high = sorted(rng.choices(range(int(axis.span.high) + 1), k=2))
            box[axis.name] = Span(Fraction(low), Fraction(high))
    return box


def some_region(rng: random.Random, axes: Sequence[Axis]) -> Region:
    return tuple(some_box(rng, axes) for _ in range(rng.choice([1, 1, 1, 2])))


def some_native(rng: random.Random) -> Native:
    units: list[Unit] = [Part.ROW] * 6
    units += [Part.ATTRIBUTE, Part.USER, UserPer("age", Fraction(1))]
    unit = rng.choice(units)
    if unit is Part.ROW:
        relation = rng.choice([Relation.ADD_REMOVE, Relation.SUBSTITUTE, Relation.ANY])
    elif unit is Part.ATTRIBUTE:
        relation = Relation.SUBSTITUTE
    else:
        relation = rng.choice([Relation.ADD_REMOVE, Relation.ANY])
    return Native(relation, unit, size_public=rng.random() < 0.1)


READS = [None, frozenset[str](), frozenset({"age"}), frozenset({"diagnosis"}),
         frozenset({"diagnosis", "area"})]  # fmt: skip


def some_entries(
    rng: random.Random, axes: Sequence[Axis], curve: Callable[[Fraction], Curve]
) -> list[Entry]:
    return [
        Entry(
            id=str(number),
            curve=curve(Fraction(rng.randint(1, 12), 16)),
            region=some_region(rng, axes),
            reads=rng.choice(READS),
            native=some_native(rng),
        )
        for number in range(rng.randint(0, 5))
    ]


#: variant -> coordinate, curve of a number, units of so many steps of it.
VARIANTS: dict[
    str, tuple[int, Callable[[Fraction], Curve], Callable[[Fraction, int], Fraction]]
] = {
    "pure": (EPS, lambda x: declared_pure(eps=x), lambda x, n: n * x),
    "zcdp": (RHO, lambda x: declared_zcdp(rho=x), lambda x, n: n * n * x),
    "gdp": (MU2, lambda x: declared_gdp(mu=x), lambda x, n: n * n * x * x),
    "renyi": (
        order_index(ORDER),
        lambda x: declared_zcdp(rho=x),
        lambda x, n: ORDER * n * n * x,
    ),
}

TARGETS: dict[str, Target] = {
    "add-remove": AddRemove(),
    "substitute": Substitute(),
    "attribute": Attributes(1),
    "two-attributes": Attributes(2),
    "label": Attributes(1, frozenset({"diagnosis"})),
    "group": Group(2, AddRemove()),
    "group-of-substitutions": Group(2, Substitute()),
}


def amount_of(entry: Entry, variant: str) -> Fraction:
    curve = entry.curve
    found = {"pure": curve.eps, "zcdp": curve.rho, "renyi": curve.rho}.get(variant)
    if found is None:  # mu was a sixteenth, and its square is exact.
        mu2 = curve.mu2
        assert isinstance(mu2, Fraction)
        return mu2
    assert isinstance(found, Fraction)
    return found


def units_of(steps: oracle.Steps, entries: Sequence[Entry], variant: str) -> int:
    """Return what a move costs, from the definition of the variant."""
    total = 0
    for count, entry in zip(steps, entries, strict=True):
        if count is None:
            return INFINITE
        amount = amount_of(entry, variant)
        exact = {
            "pure": count * amount,
            "zcdp": count**2 * amount,
            "gdp": count**2 * amount,
            "renyi": ORDER * count**2 * amount,
        }[variant] * 10**12
        assert exact.denominator == 1
        total += exact.numerator
    return total


def recomputed(joint_entries: Sequence[Entry], engine: Engine, index: int) -> int:
    """Return the sum of the charges of the move that is said to be worst."""
    move = engine.worst(index).move
    return move.total().units(index)


@pytest.mark.spec("ACC-9")
@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_engine_equals_the_oracle(
    name: str, variant: str, rng: random.Random
) -> None:
    index, curve, _ = VARIANTS[variant]
    target = TARGETS[name]
    finite = 0
    for _ in range(INSTANCES):
        axes = some_axes(rng)
        entries = some_entries(rng, axes, curve)
        moves = set(oracle.every_move(entries, axes, target))
        truth = max((units_of(move, entries, variant) for move in moves), default=0)

        engine = Engine(entries, axes, target)
        found = engine.worst(index)

        if not found.exact:
            # A record that has a single value at its place, and stays, is the same.
            assert not found.move.possible
            assert found.units >= truth
            continue
        assert found.units == truth, (axes, entries)
        assert recomputed(entries, engine, index) == truth, "the move attains it"
        finite += 0 < truth < INFINITE
    assert finite > INSTANCES / 10


def mixed_curve(rng: random.Random) -> Callable[[Fraction], Curve]:
    kinds: list[Callable[[Fraction], Curve]] = [
        lambda x: declared_pure(eps=x),
        lambda x: laplace(sensitivity_l1=x, scale=Fraction(1)),
        lambda x: gaussian(rho=x / 8),
        lambda x: declared_zcdp(rho=x / 8),
        lambda x: declared_pure(eps=x / 8, delta=Fraction(1, 10**8)),
        lambda x: declared_pure(eps=x / 8, delta=x / 10**6),
    ]
    return lambda x: rng.choice(kinds)(x)  # noqa: PLW0108 - another each time


@pytest.mark.spec("ACC-11")
@pytest.mark.parametrize("name", ["add-remove", "substitute", "attribute"])
def test_the_worst_epsilon_is_that_of_the_worst_move(
    name: str, rng: random.Random
) -> None:
    target = TARGETS[name]
    finite = 0
    for _ in range(max(20, INSTANCES // 10)):
        axes = some_axes(rng)
        entries = some_entries(rng, axes, mixed_curve(rng))
        truth = 0
        for steps in set(oracle.every_move(entries, axes, target)):
            losses = [
                UNKNOWN.loss() if count is None else group(entry.curve, count).loss()
                for count, entry in zip(steps, entries, strict=True)
            ]
            truth = max(truth, best_epsilon(total_of(losses), DELTA).units)

        found = Engine(entries, axes, target).epsilon(DELTA)

        if not found.exact:
            assert not found.move.possible
            assert found.units >= truth
            continue
        assert found.units == truth
        total = found.move.total()
        assert best_epsilon(total, DELTA).units == truth
        finite += 0 < truth < INFINITE
    assert finite


@pytest.mark.spec("ACC-10")
@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("name", ["add-remove", "substitute", "attribute"])
def test_with_little_effort_the_engine_is_never_below_the_oracle(
    name: str, variant: str, rng: random.Random
) -> None:
    index, curve, _ = VARIANTS[variant]
    target = TARGETS[name]
    gaps, bounded = [], 0
    for _ in range(INSTANCES):
        axes: list[Axis] = [AGE, AREA]
        entries = some_entries(rng, axes, curve)
        moves = set(oracle.every_move(entries, axes, target))
        truth = max((units_of(move, entries, variant) for move in moves), default=0)

        effort = Effort(cells=rng.choice([1, 20]), work=rng.choice([1, 50]), pairs=3)
        engine = Engine(entries, axes, target, effort=effort)
        found = engine.worst(index)

        assert found.units >= truth
        if found.exact:
            assert found.units == truth
        else:
            bounded += 1
            if truth > 0 and found.units < INFINITE:
                gaps.append(found.units / truth)
    mean = sum(gaps) / max(len(gaps), 1)
    print(f"  {bounded} bounds; mean gap {mean:.3f}")
    assert bounded > INSTANCES / 20


# --- users -------------------------------------------------------------------------

DAY = NumericAxis("day", Span(Fraction(0), Fraction(6)))


def some_user_entries(
    rng: random.Random, curve: Callable[[Fraction], Curve]
) -> list[Entry]:
    natives: list[tuple[Native, RowBound | None]] = [
        (Native(Relation.ADD_REMOVE, Part.USER), None),
        (Native(Relation.ANY, Part.USER), None),
        (Native(Relation.ADD_REMOVE, UserPer("day", Fraction(1))), None),
        (Native(Relation.ANY, UserPer("day", Fraction(1))), None),
        (Native(Relation.ANY, UserPer("day", Fraction(2))), None),
        (Native(Relation.ADD_REMOVE, Part.ROW), RowBound(2)),
        (
            Native(Relation.ADD_REMOVE, Part.ROW),
            RowBound(2, UserPer("day", Fraction(1))),
        ),
        (Native(Relation.ADD_REMOVE, Part.ROW), None),
        (Native(Relation.ANY, Part.USER, size_public=True), None),
    ]
    pool = rng.sample(natives[:7], rng.randint(1, 2)) + rng.sample(natives, 1)
    found = []
    for number in range(rng.randint(0, 4)):
        native, rows = rng.choice(pool)
        boxes = []
        for _ in range(rng.choice([1, 1, 2])):
            low, high = sorted(rng.sample(range(7), 2))
            boxes.append({"day": Span(Fraction(low), Fraction(high))})
        size = Fraction(rng.randint(1, 12), 16)
        found.append(
            Entry(str(number), curve(size), tuple(boxes), None, native, rows=rows)
        )
    return found


def some_users(rng: random.Random) -> Users:
    windows = rng.choice(
        [None, [(day, day + 1) for day in range(6)], [(0, 2), (2, 4), (4, 6)], [(0, 3)]]
    )
    return Users(
        along="day",
        windows=None
        if windows is None
        else tuple(Span(Fraction(low), Fraction(high)) for low, high in windows),
        at_most=rng.choice([None, 1, 2, 3]),
        change=rng.choice([Relation.ADD_REMOVE, Relation.ANY]),
    )


def expected_steps(
    entry: Entry, target: Users, window: Span
) -> tuple[oracle.Count, int | None, bool]:
    """Return native changes per block, the block, and whether it goes and comes."""
    removed = target.change is Relation.ADD_REMOVE
    all_days = [d for d in range(6) if oracle.lies(entry.region, day_record(d))]
    inside = all(window.low <= day < window.high for day in all_days)
    whole_life = removed and (target.windows is None or inside)

    def whole_blocks(length: int) -> bool:
        ends = [end for w in target.windows or () for end in (w.low, w.high)]
        return removed and (inside or all(end % length == 0 for end in ends))

    native = entry.native
    rows, per = 1, native.unit if isinstance(native.unit, UserPer) else None
    if native.unit is Part.ROW:
        if entry.rows is None:
            return None, None, False
        rows, per = entry.rows.rows, entry.rows.per
    if native.size_public:
        return None, None, False
    length = None if per is None else int(per.length)
    whole = whole_life if length is None else whole_blocks(length)
    if native.relation is Relation.ANY or whole:
        return rows, length, False
    if removed:
        return 2 * rows, length, False
    return rows, length, True


def day_record(day: int) -> oracle.Record:
    return {"day": Fraction(2 * day + 1, 2)}


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_users_are_charged_for_their_costliest_days(
    variant: str, rng: random.Random
) -> None:
    index, curve, _ = VARIANTS[variant]
    exact = 0
    gaps = []
    for _ in range(INSTANCES):
        entries, target = some_user_entries(rng, curve), some_users(rng)
        truth = 0
        windows = target.windows or (DAY.span,)
        for window in windows:
            within = range(int(window.low), int(window.high))
            described = [
                oracle.UserEntry(
                    frozenset(
                        d for d in within if oracle.lies(entry.region, day_record(d))
                    ),
                    *expected_steps(entry, target, window),
                )
                for entry in entries
            ]
            removed = target.change is Relation.ADD_REMOVE
            every = oracle.every_choice if removed else oracle.every_change
            for steps in every(described, within, target.at_most):
                truth = max(truth, units_of(steps, entries, variant))

        found = Engine(entries, [DAY], target).worst(index)

        assert found.units >= truth, (entries, target)
        if found.exact:
            exact += 1
            assert found.units == truth, (entries, target)
            assert found.move.total().units(index) == truth
        elif truth > 0 and found.units < INFINITE:
            gaps.append(found.units / truth)
    mean = sum(gaps) / len(gaps) if gaps else 1
    print(f"  {exact} exact, {len(gaps)} finite bounds, mean gap {mean:.3f}")
    assert exact > INSTANCES / 3


def test_a_users_value_for_life_separates_users(rng: random.Random) -> None:
    for _ in range(INSTANCES):
        entries = [
            Entry(
                str(number),
                declared_pure(eps=Fraction(rng.randint(1, 9))),
                ({"area": frozenset(rng.sample(AREA.values, rng.randint(0, 3)))},),
                None,
                Native(Relation.ADD_REMOVE, Part.USER),
            )
            for number in range(rng.randint(0, 5))
        ]
        amounts = [int(amount_of(entry, "pure")) for entry in entries]
        by_home = [
            sum(
                amount
                for amount, entry in zip(amounts, entries, strict=True)
                if oracle.lies(entry.region, {"area": home})
            )
            for home in AREA.values
        ]
        fixed = Engine(entries, [AREA], Users(fixed=frozenset({"area"}))).worst(EPS)
        assert fixed.units == max(by_home) * 10**12
        free = Engine(entries, [AREA], Users()).worst(EPS)
        empty = [entry for entry in entries if not any(
            oracle.lies(entry.region, {"area": home}) for home in AREA.values
        )]  # fmt: skip
        left = sum(amounts) - sum(int(amount_of(entry, "pure")) for entry in empty)
        assert free.units == left * 10**12


# --- metrics -----------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["pure", "zcdp", "gdp"])
def test_a_metric_holds_every_pair_of_points_apart(
    variant: str, rng: random.Random
) -> None:
    index, curve, _ = VARIANTS[variant]
    for _ in range(INSTANCES):
        points = tuple(
            {"age": Fraction(2 * cell + 1, 2)}
            for cell in rng.sample(range(4), rng.randint(1, 4))
        )
        target = Metric(
            points,
            lambda a, b: abs(Fraction(a["age"]) - Fraction(b["age"])),
            within=rng.choice([None, Fraction(1), Fraction(2)]),
        )
        entries = some_entries(rng, [AGE], curve)
        entries = [
            Entry(e.id, e.curve, e.region, e.reads, rng.choice([
                e.native, Native(Relation.METRIC), Native(Relation.METRIC),
            ]))
            for e in entries
        ]  # fmt: skip
        truth = 0
        for before, after, distance in oracle.metric_steps(target):
            cost = Fraction(0)
            for entry in entries:
                held, then = (
                    oracle.lies(entry.region, before),
                    oracle.lies(entry.region, after),
                )
                if entry.native.relation is Relation.METRIC:
                    steps = distance if held and then else None if held or then else 0
                else:
                    steps = oracle.native_steps(
                        entry, oracle.every_record([AGE]), before, after, None
                    )
                if steps is None:
                    cost = Fraction(INFINITE)
                    break
                power = 1 if variant == "pure" else 2
                cost += steps**power * amount_of(entry, variant) * 10**12
            truth = max(truth, int(cost))

        found = Engine(entries, [AGE], target).worst(index)

        assert found.units == min(truth, INFINITE)


# --- the table of native steps ------------------------------------------------------


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.SUBSTITUTE])
@pytest.mark.parametrize("region", [[0], [0, 1], [0, 1, 2]])
def test_the_steps_are_the_shortest_walks_between_databases(
    relation: Relation, region: list[int]
) -> None:
    """No shorter proof exists: pure DP is tight for the shortest walk."""
    values, largest = 3, 4
    axis = CategoryAxis("value", ("0", "1", "2"))
    entry = Entry(
        "e",
        declared_pure(eps=Fraction(1)),
        ({"value": frozenset(str(value) for value in region)},),
        None,
        Native(relation),
    )
    one_record = [d for d in oracle.databases(values, 2) if sum(d) in {1, 2}]
    for base in one_record:
        for before in range(values):
            if not base[before]:
                continue
            removed = tuple(n - (v == before) for v, n in enumerate(base))
            walked = oracle.distance_seen(base, removed, relation, region, largest)
            target: Target = AddRemove()
            expected = Engine([entry], [axis], target).worst(EPS).units
            if before in region:
                assert expected == (INFINITE if walked is None else walked * 10**12)
            for after in range(values):
                replaced = tuple(n + (v == after) for v, n in enumerate(removed))
                walked = oracle.distance_seen(base, replaced, relation, region, largest)
                # Values that a region shows: a change inside it is seen.
                if before == after:
                    continue
                assert walked is not None
                counted = oracle.native_steps(
                    entry,
                    [{"value": str(v)} for v in range(values)],
                    {"value": str(before)},
                    {"value": str(after)},
                    None,
                )
                assert counted == walked


def test_a_total_of_a_move_is_the_sum_of_its_charges() -> None:
    entry = Entry("e", declared_pure(eps=Fraction(1)))
    move = Engine([entry, entry], [AGE], Substitute()).worst(EPS).move
    assert move.total() == Total().plus(move.charges[0].loss).plus(move.charges[1].loss)
    assert [charge.step for charge in move.charges] == ["changes inside"] * 2

"""What units are charged under a later policy: proven, and never above what covers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.stored import to_plain

from modicum.accounting import COORDINATES, INFINITE, ORDERS, Loss, mechanisms
from modicum.accounting.curves import Curve
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, MU2, RHO
from modicum.accounting.group_privacy import group
from modicum.core.document import from_python
from modicum.core.rationals import DELTA_UNIT
from modicum.ledger.decision.charges import (
    UNKNOWN,
    charged,
    charged_by_unit,
    of_changes,
)
from modicum.ledger.log.codec import from_plain
from modicum.ledger.log.events import Event, PastRecorded
from modicum.ledger.log.recorded_release import (
    RecordedMechanism,
    RecordedRelease,
    record_release,
)
from modicum.release import Relation, Unit, Vocabulary, parse_release, price
from modicum.release.units import RELATIONS


def vocabulary(*units: Unit) -> Vocabulary:
    names = tuple(unit.name for unit in units)
    facts = {unit.name: unit for unit in units}
    return Vocabulary(frozenset(), {}, names, "add-remove", facts)


def recorded(
    losses: Mapping[str, Loss], neighbors: Mapping[str, Relation] | None = None
) -> RecordedMechanism:
    return RecordedMechanism({}, (), {}, losses, neighbors=neighbors or {})


def loss_of(**measures: int) -> Loss:
    """Return a loss with some finite measures."""
    values = [INFINITE] * COORDINATES
    values[DELTA] = 0
    for name, value in measures.items():
        values[{"eps": EPS, "rho": RHO, "mu2": MU2, "delta": DELTA}[name]] = value
    return Loss(tuple(values))


# --- one unit, two relations ----------------------------------------------------------

SAME_LOSS, TWICE, FOUR_TIMES, NOTHING = "the same", "twice", "four times", "nothing"

#: Written out: recorded under, wanted under, what that makes of the loss.
CONVERTED: dict[tuple[Relation, Relation], str] = {
    ("add-remove", "add-remove"): SAME_LOSS,
    ("add-remove", "substitute"): TWICE,
    ("add-remove", "any-change"): TWICE,
    ("substitute", "add-remove"): NOTHING,
    ("substitute", "substitute"): SAME_LOSS,
    ("substitute", "any-change"): NOTHING,
    ("any-change", "add-remove"): SAME_LOSS,
    ("any-change", "substitute"): SAME_LOSS,
    ("any-change", "any-change"): SAME_LOSS,
}
#: The same for what a larger unit recorded, wanted for one that lies in it.
INHERITED = {**CONVERTED, ("add-remove", "add-remove"): TWICE}

#: From a unit that may cover with another instance in another table.
MOVED: dict[tuple[Relation, Relation], str] = {
    ("add-remove", "add-remove"): TWICE,
    ("add-remove", "substitute"): FOUR_TIMES,
    ("add-remove", "any-change"): FOUR_TIMES,
    ("substitute", "add-remove"): NOTHING,
    ("substitute", "substitute"): NOTHING,
    ("substitute", "any-change"): NOTHING,
    ("any-change", "add-remove"): SAME_LOSS,
    ("any-change", "substitute"): TWICE,
    ("any-change", "any-change"): TWICE,
}


def outcome(rule: str, loss: Loss) -> Loss:
    return {
        SAME_LOSS: loss,
        TWICE: of_changes(loss, 2),
        FOUR_TIMES: of_changes(loss, 4),
        NOTHING: UNKNOWN,
    }[rule]


@pytest.mark.spec("REL-9")
@pytest.mark.parametrize(("before", "now"), list(CONVERTED))
def test_a_loss_under_another_relation(before: Relation, now: Relation) -> None:
    loss = mechanisms.gaussian(rho=Fraction(1, 162)).loss()
    one = recorded({"user": loss}, {"user": before})
    own = vocabulary(Unit("user", "u", neighbors=now))
    assert charged(one, "user", own) == outcome(CONVERTED[before, now], loss)
    below = vocabulary(
        Unit("user", "u"), Unit("day", "u", "day", "at", ("user",), {}, now)
    )
    assert charged(one, "day", below) == outcome(INHERITED[before, now], loss)
    moved = vocabulary(
        Unit("user", "u"), Unit("device", "d", within=("user",), neighbors=now)
    )
    assert charged(one, "device", moved) == outcome(MOVED[before, now], loss)


CURVES = [
    *(mechanisms.gaussian(rho=Fraction(rho)) for rho in ("0.5", "0.01", "0.00005")),
    *(mechanisms.declared_pure(eps=Fraction(eps)) for eps in (1, 3)),
    mechanisms.declared_renyi({Fraction(8): Fraction(1, 2)}),
    mechanisms.laplace(sensitivity_l1=Fraction(1), scale=Fraction(2)),
]


@pytest.mark.parametrize("curve", CURVES)
def test_twice_is_never_below_two_changes_of_the_curve(curve: Curve) -> None:
    # A single order says more to `group`, which may look between and beyond orders.
    twice, exact = of_changes(curve.loss(), 2), group(curve, 2).loss()
    assert nowhere_above(exact, twice)
    assert twice.coordinates[EPS] == min(2 * curve.loss().coordinates[EPS], INFINITE)


def test_twice_on_integers() -> None:
    known = of_changes(loss_of(eps=10**12, rho=10**11, mu2=3), 2)
    assert known.coordinates[:FIRST_ORDER] == (2 * 10**12, 4 * 10**11, 12)
    for place, order in enumerate(ORDERS):
        assert known.coordinates[FIRST_ORDER + place] == min(
            2 * 10**12, -(-order * 12 // 2)
        )
    assert of_changes(loss_of(rho=1), 2).coordinates[FIRST_ORDER] == 5  # 5/4 * 4
    assert (
        of_changes(loss_of(mu2=1), 2).coordinates[FIRST_ORDER] == 3
    )  # 5/8 * 4, rounded up
    assert of_changes(loss_of(rho=INFINITE - 1), 2).coordinates[RHO] == INFINITE
    assert of_changes(loss_of(), 2) == loss_of()
    assert of_changes(loss_of(eps=1, delta=1), 2) == UNKNOWN
    assert of_changes(UNKNOWN, 2) == UNKNOWN


# --- units that cover each other ------------------------------------------------------


@pytest.mark.spec("REL-9")
def test_units_without_an_order_are_charged_what_was_recorded() -> None:
    loss = loss_of(eps=5)
    one = recorded({"user": loss})
    vocab = vocabulary(Unit("user", "u"), Unit("house", "h"))
    assert vocab.independent
    assert charged(one, "user", vocab) is loss
    assert charged(one, "house", vocab) is UNKNOWN
    # A policy that says nothing about its units has independent ones.
    assert Vocabulary(frozenset(), {}, ("user",), "add-remove").independent
    assert not Vocabulary(frozenset(), {}, ("user",), "substitute").independent


def ordered(user: Relation, day: Relation = "add-remove") -> Vocabulary:
    return vocabulary(
        Unit("day", "u", "day", "at", ("user",), {}, day),
        Unit("user", "u", neighbors=user),
    )


@pytest.mark.spec("REL-9")
def test_a_day_is_charged_no_more_than_any_change_of_the_user() -> None:
    changed: dict[str, Relation] = {"user": "any-change"}
    one = recorded(
        {"day": loss_of(eps=9, rho=2), "user": loss_of(eps=5, rho=3)}, changed
    )
    assert charged(one, "day", ordered("any-change")) == loss_of(eps=5, rho=2)
    # A whole user is another matter: a day's change is not one of the user's.
    assert charged(one, "day", ordered("add-remove")) == loss_of(eps=9, rho=2)
    # With a delta nothing is mixed.
    fine = loss_of(eps=5, delta=7)
    one = recorded({"day": loss_of(eps=9), "user": fine}, changed)
    assert charged(one, "day", ordered("any-change")) == fine
    low = loss_of(eps=4, delta=7)
    one = recorded({"day": low, "user": fine}, changed)
    assert charged(one, "day", ordered("any-change")) == low


@pytest.mark.spec("REL-9")
def test_two_covers_with_a_delta_each_are_raised_rather_than_mixed() -> None:
    vocab = vocabulary(
        Unit("day", "u", "day", "at", ("week", "month")),
        Unit("week", "u", "week", "at", neighbors="any-change"),
        Unit("month", "u", "month", "at", neighbors="any-change"),
    )
    week, month = loss_of(eps=1, delta=9), loss_of(eps=2, delta=5)
    relations: dict[str, Relation] = {"week": "any-change", "month": "any-change"}
    found = charged_by_unit(recorded({"week": week, "month": month}, relations), vocab)
    assert found["day"] in (week, month)
    for cover in ("week", "month"):
        assert nowhere_above(found["day"], found[cover])
    assert not nowhere_above(found["day"], loss_of(eps=1, delta=5))


def nowhere_above(loss: Loss, other: Loss) -> bool:
    pairs = zip(loss.coordinates, other.coordinates, strict=True)
    return all(mine <= theirs for mine, theirs in pairs)


# --- generated ------------------------------------------------------------------------

amounts = st.one_of(st.integers(0, 9), st.integers(0, INFINITE), st.just(INFINITE))
deltas = st.one_of(st.just(0), st.integers(0, 5), st.just(DELTA_UNIT))


@st.composite
def losses(draw: st.DrawFn) -> Loss:
    if draw(st.integers(0, 9)) == 0:
        return UNKNOWN
    measures = draw(st.lists(amounts, min_size=DELTA, max_size=DELTA))
    return Loss((*measures, draw(deltas)))


#: A diamond with a tail: every kind of order that units can have.
SHAPE = {
    "user": (),
    "week": ("user",),
    "month": ("user",),
    "day": ("week", "month"),
    "hour": ("day",),
    "house": (),
}


@st.composite
def situations(draw: st.DrawFn) -> tuple[RecordedMechanism, Vocabulary]:
    relations = st.sampled_from(RELATIONS)
    ids = st.sampled_from(["a", "a", "b"])
    units = [
        Unit(name, draw(ids), within=within, neighbors=draw(relations))
        for name, within in SHAPE.items()
    ]
    known = draw(st.dictionaries(st.sampled_from(sorted(SHAPE)), losses()))
    neighbors = {name: draw(relations) for name in known if draw(st.booleans())}
    return recorded(known, neighbors), vocabulary(*draw(st.permutations(units)))


@pytest.mark.spec("REL-9")
@settings(max_examples=examples(400), deadline=None)
@given(situations())
def test_charges_are_monotone_and_proven(
    situation: tuple[RecordedMechanism, Vocabulary],
) -> None:
    one, vocab = situation
    charges = {unit: charged(one, unit, vocab) for unit in vocab.units}
    assert charges == charged_by_unit(one, vocab)
    for unit, loss in charges.items():
        for cover in vocab.covers[unit]:
            if is_bounded_by(vocab, unit, cover):
                assert nowhere_above(loss, charges[cover])
        assert follows(loss, proven_for(one, vocab, unit))


def proven_for(one: RecordedMechanism, vocab: Vocabulary, unit: str) -> list[Loss]:
    """Return all that is proven for a unit.

    That is what was recorded for it and its covers; and, since any change of it is
    one change of a cover that bounds it, what is proven for that cover.
    """
    proven: list[Loss] = []
    for cover in vocab.covers[unit]:
        if cover != unit and is_bounded_by(vocab, unit, cover):
            proven += proven_for(one, vocab, cover)
        if cover not in one.losses:
            continue
        same = has_one_owner(vocab, unit, cover)
        table = CONVERTED if cover == unit else INHERITED if same else MOVED
        before = one.neighbors.get(cover, "add-remove")
        rule = table[before, vocab.relation(unit)]
        proven.append(outcome(rule, one.losses[cover]))
    return proven


def is_bounded_by(vocab: Vocabulary, unit: str, cover: str) -> bool:
    whole = vocab.relation(unit) == "add-remove"
    changing = vocab.relation(cover) == "any-change"
    return changing and (whole or has_one_owner(vocab, unit, cover))


def has_one_owner(vocab: Vocabulary, unit: str, cover: str) -> bool:
    """Return whether links between units of one id lead from a unit to a cover."""
    own = vocab.unit_facts[unit]
    return unit == cover or any(
        vocab.unit_facts[wide].id == own.id and has_one_owner(vocab, wide, cover)
        for wide in own.within
    )


def follows(loss: Loss, proven: list[Loss]) -> bool:
    """Return whether a loss is at least one that is proven, or a mix of exact ones."""
    options = [*proven, UNKNOWN]
    exact = [one.coordinates for one in proven if not one.coordinates[DELTA]]
    if exact:
        options.append(Loss(tuple(map(min, *exact, exact[0]))))
    return any(nowhere_above(one, loss) for one in options)


@settings(max_examples=examples(200), deadline=None)
@given(losses())
def test_twice_is_at_least_once(loss: Loss) -> None:
    exact = not loss.coordinates[DELTA]
    twice = of_changes(loss, 2)
    assert (twice == UNKNOWN) or exact
    for index in (EPS, MU2):
        assert twice.coordinates[index] >= loss.coordinates[index]


# --- what is written down -------------------------------------------------------------


def event_of(one: RecordedMechanism) -> Event:
    release = RecordedRelease("r", "0" * 64, {}, {}, (one,))
    return Event("2026-05-01T12:00:00.000000Z", "t", PastRecorded(release, "0" * 64))


def mechanism_in(plain: object) -> dict[str, object]:
    found = plain["body"]["release"]["mechanisms"][0]  # type: ignore[index]
    assert isinstance(found, dict)
    return found


@pytest.mark.spec("LED-3")
def test_relations_are_written_only_where_they_are_not_the_usual_one() -> None:
    plain = to_plain(event_of(recorded({"user": loss_of(eps=1)})))
    assert "neighbors" not in mechanism_in(plain)
    assert from_plain(plain) == event_of(recorded({"user": loss_of(eps=1)}))
    changed = event_of(recorded({"user": loss_of(eps=1)}, {"user": "any-change"}))
    plain = to_plain(changed)
    assert mechanism_in(plain)["neighbors"] == {"user": "any-change"}
    assert from_plain(plain) == changed


@pytest.mark.parametrize(
    "neighbors",
    [
        {},
        {"user": "add-remove"},
        {"user": "bounded"},
        {"house": "substitute"},
        {"user": 1},
        None,
        "substitute",
        ["user"],
    ],
)
def test_other_words_about_relations_are_no_event(neighbors: object) -> None:
    plain = to_plain(event_of(recorded({"user": loss_of(eps=1)})))
    mechanism_in(plain)["neighbors"] = neighbors
    with pytest.raises(ValueError, match=r"neighbor|mapping|text"):
        from_plain(plain)


def test_a_priced_release_is_recorded_with_its_relations() -> None:
    vocab = ordered("any-change")
    described = {
        "release": "r",
        "mechanisms": [
            {
                "mechanism": "declared",
                "attributes": [],
                "cost": {"user": {"eps": 1}},
            }
        ],
    }
    release = price(parse_release(from_python(described), vocab), vocab)
    (one,) = record_release(release).mechanisms
    assert one.neighbors == {"user": "any-change"}
    assert one.losses["day"] == one.losses["user"]
    assert charged(one, "day", vocab) == one.losses["user"]

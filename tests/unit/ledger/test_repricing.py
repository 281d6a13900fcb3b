"""An audit prices every release again: nobody can state less than what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from samples import audited, first_version
from samples.audited import activated, described_anew, sealed
from samples.first_version import sealed_first, strange_log
from samples.simulation import Simulation
from samples.small import NOON, compiled

from modicum.accounting import COORDINATES, INFINITE, Loss
from modicum.accounting.grid import coordinate_name
from modicum.api.local.backfill import price_past
from modicum.api.local.evaluation import price_release
from modicum.ledger import (
    GENESIS,
    AuditReport,
    Balances,
    Event,
    Record,
    RecordedRelease,
    audit,
    read_record,
    seal,
)
from modicum.ledger.decision.decide import decide
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    PastRecorded,
    PolicyActivated,
    ReleaseDenied,
    ReleaseReserved,
)
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.ledger.proof import repricing
from modicum.ledger.proof.repricing import (
    Repricing,
    UnderstatedError,
    UnknownDescriptionError,
    Unpriced,
)
from modicum.release import price

#: Units that cover each other, under several relations, and something timeless.
TIMED = """
modicum: policy/v1
name: timed
units:
  user: {id: user_id, neighbors: any-change}
  month: {id: user_id, time: {column: at, period: month}, within: user}
  day: {id: user_id, time: {column: at, period: day}, within: [user, month]}
  house: {id: house_id, neighbors: substitute}
labels:
  ml: {values: [none, black-box], default: black-box}
schema:
  attributes: {age: low, pay: low, born: [low, {}, static]}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user]}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 50}}
  - {name: day, for_each: attribute, unit: day, budget: {low: {rho: 2}}}
"""
DELTA_ONLY = {"eps": 0.1, "delta": 1e-9}
MECHANISMS: tuple[dict[str, Any], ...] = (
    {"mechanism": "gaussian", "sigma": 20, "sensitivity": {"day": {"l2": 1}}},
    {"mechanism": "laplace", "scale": 3, "sensitivity": {"day": {"l1": 1}}},
    {
        "mechanism": "gaussian",
        "sigma": 5,
        "sensitivity": {"day": {"l2": 1}},
        "sampling": {"unit": "day", "rate": 0.2},
    },
    {
        "mechanism": "laplace",
        "scale": 3,
        "sensitivity": {"day": {"l1": 1}, "month": {"l1": 2}},
        "sampling": {"unit": "month", "rate": 0.125},
    },
    {
        "mechanism": "gaussian",
        "sigma": 20,
        "sensitivity": {"day": {"l2": 1}},
        "cost": {"day": {"rho": 0.3}, "month": {"rho": 2}},
    },
    {"mechanism": "declared", "cost": {"day": {"mu": 0.05}}},
    {"mechanism": "declared", "cost": {"day": DELTA_ONLY, "user": {"rho": 1}}},
    {"mechanism": "declared", "cost": {"user": {"rdp": {8: 0.5, 1.25: 0.01}}}},
    {
        "mechanism": "randomized-response",
        "truth": 0.55,
        "values": 2,
        "contribution_bound": {"day": 1},
        "public_frame": True,
    },
)
PARTS: tuple[dict[str, Any], ...] = (
    {"attributes": ["age"]},
    {"attributes": ["age"], "periods": "2026-03-02"},
    {"attributes": ["pay"], "periods": ["2026-02"], "where": {"country": "CH"}},
    {"attributes": ["born"], "periods": ["2026-02"]},
)


def told(number: int, mechanism: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    cost = {"house": {"eps": 1}} | dict(mechanism.get("cost", {}))
    if mechanism["mechanism"] == "gaussian":
        cost["house"] = {"rho": 1}
    cost.setdefault("user", {cost_measure(mechanism): 9})
    one = {**mechanism, "cost": cost}
    return {"release": f"r-{number}", "mechanisms": [one], **more}


def cost_measure(mechanism: Mapping[str, Any]) -> str:
    return "rho" if mechanism["mechanism"] == "gaussian" else "eps"


@cache
def timed_bodies() -> tuple[Body, ...]:
    """Return what happens in a log with mechanisms of every kind, over many parts."""
    policy = compiled(TIMED)
    digest = policy.policy.digest
    found: list[Body] = [activated(TIMED)]
    balances = Balances(policy)
    every = [(one, part) for one in MECHANISMS for part in PARTS]
    for number, (one, part) in enumerate(every):
        described_so = {**one, **part}
        if number % 3 == 1:
            unknown = told(number, {**described_so, "attributes": "all"})
            past, assumed = price_past(unknown, policy.policy.vocabulary)
            found.append(PastRecorded(past, digest, assumed))
            balances.charge(past, day_of(NOON))
            continue
        release = price_release(told(number, described_so), policy)
        blocking = decide(balances, release, day_of(NOON)).blocking
        if blocking:
            found.append(ReleaseDenied(release, digest, blocking))
            continue
        found.append(ReleaseReserved(release, digest, audited.LATER))
        balances.charge(release, day_of(NOON))
    return tuple(found)


@cache
def simulated() -> tuple[Event, ...]:
    """Return a history that many people made, among them those who deny and repeat."""
    simulation = Simulation("to be priced again")
    simulation.run(steps=60)
    return tuple(read(Record(*row) for row in simulation.rows()))


def of_bodies(happened: Sequence[Body]) -> tuple[Event, ...]:
    return tuple(read(sealed(happened)))


def read(rows: Iterable[Record]) -> Iterator[Event]:
    previous = GENESIS
    for record in rows:
        yield read_record(record, record.seq, previous)
        previous = record.hash


@cache
def history(which: str) -> tuple[Event, ...]:
    if which == "simulated":
        return simulated()
    return of_bodies(audited.bodies() if which == "small" else timed_bodies())


HISTORIES = ("small", "timed", "simulated")


def chained(happened: Sequence[Event]) -> list[Record]:
    rows: list[Record] = []
    previous = GENESIS
    for seq, event in enumerate(happened, 1):
        body = event.body
        if isinstance(body, ApprovalGiven):  # Who agrees looked at all before it.
            event = structs.replace(event, body=structs.replace(body, head=previous))  # noqa: PLW2901
        rows.append(seal(event, seq, previous))
        previous = rows[-1].hash
    return rows


class Place(NamedTuple):
    """One coordinate of one loss."""

    seq: int
    mechanism: int
    unit: str
    coordinate: int


def release_of(event: Event) -> RecordedRelease | None:
    body = event.body
    if isinstance(body, ReleaseReserved | ReleaseDenied | PastRecorded):
        return body.release
    return None


@cache
def places(which: str) -> tuple[Place, ...]:
    """Return every coordinate of every loss of a history that can be lowered."""
    return tuple(
        Place(seq, number, unit, index)
        for seq, event in enumerate(history(which), 1)
        if (release := release_of(event)) is not None
        for number, one in enumerate(release.mechanisms)
        for unit, loss in one.losses.items()
        for index in range(COORDINATES)
        if loss.coordinates[index]
    )


def changed_loss(
    release: RecordedRelease, place: Place, change: int
) -> RecordedRelease:
    mechanisms = list(release.mechanisms)
    one = mechanisms[place.mechanism]
    units = list(one.losses[place.unit].coordinates)
    units[place.coordinate] = min(units[place.coordinate] + change, INFINITE)
    losses = {**one.losses, place.unit: Loss(tuple(units))}
    mechanisms[place.mechanism] = replace(one, losses=losses)
    return structs.replace(release, mechanisms=tuple(mechanisms))


def with_release(event: Event, release: RecordedRelease) -> Event:
    body = event.body
    assert isinstance(body, ReleaseReserved | ReleaseDenied | PastRecorded)
    return structs.replace(event, body=structs.replace(body, release=release))


def forged(which: str, place: Place, change: int = -1) -> list[Record]:
    happened = list(history(which))
    event = happened[place.seq - 1]
    release = release_of(event)
    assert release is not None
    other = changed_loss(release, place, change)
    happened[place.seq - 1] = with_release(event, other)
    return chained(happened)


# --- what is true holds ---------------------------------------------------------------


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("which", HISTORIES)
def test_an_honest_history_holds(which: str) -> None:
    rows = chained(history(which))
    report = audit(rows)
    assert report.entries == len(rows)
    assert report.unpriced == Unpriced()


def test_the_histories_have_losses_of_every_origin() -> None:
    for which in ("small", "timed"):
        kinds = {type(event.body) for event in history(which)}
        assert kinds >= {ReleaseReserved, ReleaseDenied, PastRecorded}
    assert len(places("simulated")) > 1000
    found = {place.unit for place in places("timed")}
    assert found == {"user", "month", "day", "house"}
    assert len(places("timed")) > 1000
    assert {place.coordinate for place in places("timed")} == set(range(COORDINATES))


# --- what is less is found ------------------------------------------------------------


@pytest.mark.spec("AUD-9")
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), which=st.sampled_from(HISTORIES))
def test_a_loss_that_is_lower_by_one_unit_is_found(
    data: st.DataObject, which: str
) -> None:
    place = data.draw(st.sampled_from(places(which)))
    rows = forged(which, place)
    for again in (None, lambda: rows):
        with pytest.raises(UnderstatedError) as caught:
            audit(rows, again=again)
        assert caught.value.seq == place.seq
        said = str(caught.value)
        assert f"for `{place.unit}`" in said
        assert f"states {coordinate_name(place.coordinate)} " in said


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("which", ["small", "timed"])
def test_every_coordinate_of_every_loss_counts(which: str) -> None:
    """All of them, by the check alone: reading a log each time would take long."""
    check, policy = Repricing(), compiled(TIMED).policy
    for seq, event in enumerate(history(which), 1):
        release = release_of(event)
        if release is None:
            if isinstance(event.body, PolicyActivated):
                policy = compiled(event.body.text).policy
            continue
        vocab = policy.vocabulary
        check.check(release, vocab, seq, 2)
        for place in (one for one in places(which) if one.seq == seq):
            with pytest.raises(UnderstatedError):
                check.check(changed_loss(release, place, -1), vocab, seq, 2)
            check.check(changed_loss(release, place, 1), vocab, seq, 2)
    assert check.unpriced == Unpriced()


@pytest.mark.spec("REL-15")
def test_a_derived_loss_that_is_not_named_so_is_found() -> None:
    vocab = compiled(TIMED).policy.vocabulary
    counts = Counter[str]()
    for seq, event in enumerate(history("timed"), 1):
        release = release_of(event)
        if release is None:
            continue
        for one in release.mechanisms:
            assert one.derived is not None
            keys = ("cost", "sensitivity", "contribution_bound")
            stated = {unit for key in keys for unit in one.description[key]}  # type: ignore[union-attr]
            assert {*one.losses} - stated <= {*one.derived}
            counts["stated"] += len({*one.losses} - {*one.derived})
            for unit in one.losses:
                named = tuple(sorted({*one.derived} ^ {unit}))
                other = structs.replace(
                    release, mechanisms=(replace(one, derived=named),)
                )
                if unit not in one.derived:  # Too careful is no contradiction.
                    Repricing().check(other, vocab, seq, 6)
                    continue
                counts["derived"] += 1
                with pytest.raises(UnderstatedError, match=f"`{unit}` follows from"):
                    Repricing().check(other, vocab, seq, 6)
                unknown = replace(one, derived=None)
                Repricing().check(
                    structs.replace(release, mechanisms=(unknown,)), vocab, seq, 6
                )
    assert min(counts["stated"], counts["derived"]) > 10


def test_nothing_else_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chained anew, a lower loss is seamless but for its price."""
    place = next(
        one
        for one in places("timed")
        if isinstance(history("timed")[one.seq - 1].body, ReleaseReserved)
    )
    monkeypatch.setattr(Repricing, "check", lambda *_: None)
    assert audit(forged("timed", place)).entries == len(history("timed"))


@pytest.mark.spec("AUD-9")
def test_more_than_the_price_is_no_contradiction() -> None:
    for index in range(COORDINATES):
        # Of a past release: decisions that come out otherwise would be found.
        rows = forged("small", Place(2, 0, "user", index), 1)
        assert audit(rows).entries == len(rows)


@pytest.mark.spec("AUD-9")
def test_it_is_said_what_is_stated_and_what_it_costs() -> None:
    with pytest.raises(ChainBreakError) as caught:
        audit(forged("small", Place(2, 0, "user", 1)))
    (problem,) = caught.value.problems
    assert problem.message == (
        "the ledger is broken at entry 2: release `old`, mechanism `counts`: it states"
        " rho 0.003999999999 for `user`, and its description costs 0.004"
    )
    assert "active at its entry" in problem.notes[0]
    assert "restore" in problem.help
    with pytest.raises(ChainBreakError, match=r"eps 4611\d+\.\d+ for .* costs inf$"):
        audit(forged("small", Place(2, 0, "user", 0)))
    delta = next(one for one in places("timed") if one.coordinate == COORDINATES - 1)
    said = r"states delta 0\.000000000999999999 for `\w+`, and .* costs 0\.000000001"
    with pytest.raises(ChainBreakError, match=said):
        audit(forged("timed", delta))


# --- what is stated where no price is -------------------------------------------------

ONE = audited.priced("r-1")
(TWIN,) = ONE.mechanisms
DIGEST = compiled(audited.ASKING).policy.digest
NOTHING = Loss((0,) * COORDINATES)


def with_mechanism(**changes: Any) -> RecordedRelease:
    other = structs.replace(ONE, mechanisms=(replace(TWIN, **changes),))
    return described_anew(other)


def audited_with(release: RecordedRelease) -> AuditReport:
    return audit(sealed([activated(audited.ASKING), PastRecorded(release, DIGEST)]))


def again_described(**changes: Any) -> RecordedRelease:
    return with_mechanism(description={**TWIN.description, **changes})


@pytest.mark.spec("AUD-9")
def test_a_loss_for_a_unit_that_may_come_later_is_not_believed() -> None:
    more = with_mechanism(losses={**TWIN.losses, "home": NOTHING})
    with pytest.raises(UnderstatedError, match="`home`, which is not a unit"):
        audited_with(more)


@pytest.mark.spec("AUD-9")
def test_a_loss_that_is_left_out_is_found_but_in_the_first_version() -> None:
    none = with_mechanism(losses={})
    with pytest.raises(UnderstatedError, match="it states no loss for `user`"):
        audited_with(none)
    # It is charged without limit.
    vocab = compiled(audited.ASKING).policy.vocabulary
    Repricing().check(none, vocab, 2, 1)


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize(
    "mechanism",
    [
        {"mechanism": "declared", "cost": {"user": {"eps": Fraction(1, 3)}}},
        {"mechanism": "declared", "cost": {"user": {"rdp": {3: Fraction(1, 7)}}}},
        {
            "mechanism": "declared",
            "cost": {"user": {"rho": Fraction(10**400 + 1, 3**800)}},
        },
        {
            "mechanism": "gaussian",
            "sigma": Fraction(10, 3),
            "sensitivity": {"user": {"l2": Fraction(2, 3)}},
        },
    ],
)
def test_numbers_that_no_file_can_hold_are_priced_again(
    mechanism: dict[str, Any],
) -> None:
    policy = compiled(audited.ASKING)
    whole = {"name": "thirds", "attributes": ["age"], **mechanism}
    release = price_release({"release": "r-1", "mechanisms": [whole]}, policy)
    assert audited_with(release).unpriced == Unpriced()


def test_open_text_that_may_become_a_label_is_found() -> None:
    forged = described_anew(structs.replace(ONE, metadata={"topic": "lax"}))
    with pytest.raises(ChainBreakError, match="`topic`, which is not a free text"):
        audited_with(forged)


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("relation", ["substitute", "any-change"])
def test_a_loss_for_more_neighbors_than_it_is_priced_for_is_found(
    relation: Any,
) -> None:
    with pytest.raises(UnderstatedError, match=f"under {relation} neighbors"):
        audited_with(with_mechanism(neighbors={"user": relation}))


@pytest.mark.spec("AUD-9")
def test_a_loss_for_any_change_holds_for_fewer() -> None:
    place = next(one for one in places("timed") if one.unit == "user")
    release = release_of(history("timed")[place.seq - 1])
    assert release is not None
    (one,) = release.mechanisms
    assert one.neighbors == {"user": "any-change", "house": "substitute"}
    vocab = compiled(TIMED).policy.vocabulary

    def stated(**neighbors: Any) -> RecordedRelease:
        other = replace(one, neighbors={**one.neighbors, **neighbors})
        return structs.replace(release, mechanisms=(other,))

    Repricing().check(stated(user="substitute"), vocab, 2, 2)
    fewer = replace(one, neighbors={"house": "substitute"})
    Repricing().check(structs.replace(release, mechanisms=(fewer,)), vocab, 2, 2)
    for wrong in (stated(house="any-change"), stated(day="substitute")):
        with pytest.raises(UnderstatedError, match="neighbors"):
            Repricing().check(wrong, vocab, 2, 2)


# --- samples --------------------------------------------------------------------------

NEAR = """
modicum: policy/v1
name: near
units:
  user: {id: user_id}
  visit: {id: visit_id, within: user, groups: {user: 3}}
schema: {attributes: {age: low}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 50}}
"""


@pytest.mark.spec("AUD-9")
def test_a_sample_that_was_told_smaller_or_elsewhere_is_found() -> None:
    policy = compiled(NEAR)
    told = {
        "mechanism": "laplace",
        "attributes": ["age"],
        "scale": 2,
        "sensitivity": {"user": {"l1": 1}, "visit": {"l1": 1}},
        "sampling": {"unit": "user", "rate": 0.25},
    }
    honest = price_release({"release": "r-1", "mechanisms": [told]}, policy)

    def checked(**changes: Any) -> None:
        """Audit losses of the honest release beside another description."""
        (one,) = honest.mechanisms
        described = {**one.description, **changes}
        if described["sampling"] is None:
            del described["sampling"]
        other = structs.replace(
            honest, mechanisms=(replace(one, description=described),)
        )
        digest = policy.policy.digest
        past = PastRecorded(described_anew(other), digest)
        audit(sealed([activated(NEAR), past]))

    checked()
    checked(sampling={"unit": "user", "rate": "0.2"})  # It states more than that costs.
    for wrong in (
        None,
        {"unit": "user", "rate": "0.26"},
        {"unit": "user", "rate": "0.250000001"},
        {"unit": "visit", "rate": "0.25"},
    ):
        with pytest.raises(UnderstatedError, match=r"states .* for `\w+`, and its"):
            checked(sampling=wrong)
    for malformed in ({"unit": "user"}, {"unit": "user", "rate": "1"}, "half"):
        with pytest.raises(UnderstatedError, match="has no price"):
            checked(sampling=malformed)
    for later in ({"unit": "user", "rate": "0.25", "by": "shuffling"},):
        with pytest.raises(UnknownDescriptionError, match="its sampling by `by`"):
            checked(sampling=later)


# --- what cannot be priced again ------------------------------------------------------

#: Descriptions that say what this version does not know, and what is said of each.
STRANGE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"kind": "pld"}, "mechanisms of the kind `pld`"),
    ({"later": {}}, "its field `later`"),
    ({"parameters": {"steps": "1"}}, "its parameter `steps`"),
    ({"cost": {"user": {"pld": "1"}}}, "its cost in `pld`"),
)


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize(("changes", "said"), STRANGE)
@pytest.mark.parametrize("hidden", [False, True])
def test_what_this_version_does_not_know_hides_no_loss(
    changes: dict[str, Any], said: str, hidden: bool
) -> None:
    unexpected = again_described(**changes)
    if hidden:
        (one,) = unexpected.mechanisms
        low = replace(one, losses={"user": NOTHING})
        unexpected = structs.replace(unexpected, mechanisms=(low,))
    with pytest.raises(UnknownDescriptionError) as caught:
        audited_with(unexpected)
    (problem,) = caught.value.problems
    assert caught.value.seq == 2
    assert problem.message.startswith(
        "the ledger is broken at entry 2: release `r-1`, mechanism `counts`: this"
        f" version of modicum cannot price it: {said}"
    )
    assert problem.help.startswith("verify with the version of modicum that wrote")
    assert "is not accepted" in problem.notes[0]


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("kind", [ReleaseReserved, ReleaseDenied])
def test_no_entry_that_brings_a_release_in_may_say_it(kind: type[Body]) -> None:
    unexpected = again_described(kind="pld")
    body: Body = ReleaseReserved(unexpected, DIGEST, audited.LATER)
    if kind is ReleaseDenied:
        body = ReleaseDenied(unexpected, DIGEST, ("global @standard",))
    with pytest.raises(UnknownDescriptionError, match="entry 2"):
        audit(sealed([activated(audited.ASKING), body]))


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize(("changes", "said"), STRANGE)
def test_in_the_first_version_it_is_counted(changes: dict[str, Any], said: str) -> None:
    unexpected = first_version.described(ONE, **changes)
    found = audited_first(unexpected)
    assert (found.releases, len(found.first)) == (1, 1)
    assert found.first[0].why.startswith(said)


@pytest.mark.spec("AUD-9")
def test_the_first_few_are_named() -> None:
    rows = strange_log(7)
    found = audit(rows).unpriced
    assert found.releases == 7
    assert [one.seq for one in found.first] == [2, 3, 4, 5, 6]
    assert found.first[0].release == "r-0"
    assert found.first[0].mechanism == "counts"
    assert "`pld`" in found.first[0].why
    assert found.to_dict()["releases"] == 7
    assert {event.version for event in read(rows)} == {1}


@pytest.mark.spec("AUD-9")
def test_two_strange_mechanisms_are_one_release() -> None:
    unexpected = first_version.described(ONE, kind="pld")
    (one,) = unexpected.mechanisms
    second = replace(one, description={**one.description, "name": "second"})
    assert (
        audited_first(structs.replace(unexpected, mechanisms=(one, second))).releases
        == 1
    )
    low = replace(TWIN, losses={"user": NOTHING})
    third = replace(low, description={**low.description, "name": "third"})
    with pytest.raises(UnderstatedError, match="`third`"):
        audited_first(structs.replace(unexpected, mechanisms=(one, third)))


@pytest.mark.spec("AUD-9")
def test_what_has_no_price_is_found_but_in_the_first_version() -> None:
    impossible = again_described(cost={})
    with pytest.raises(UnderstatedError, match=r"has no price \(.*has no cost"):
        audited_with(impossible)
    found = audited_first(impossible)
    assert found.releases == 1
    assert "has no cost" in found.first[0].why


@pytest.mark.spec("AUD-9")
def test_what_has_a_price_is_compared_in_the_first_version_too() -> None:
    assert audited_first(ONE) == Unpriced()
    low = replace(TWIN, losses={"user": NOTHING})
    with pytest.raises(UnderstatedError, match="costs inf"):
        audited_first(structs.replace(ONE, mechanisms=(low,)))


def audited_first(release: RecordedRelease) -> Unpriced:
    """Return what is not priced of an entry of the first version."""
    past = PastRecorded(release, DIGEST)
    return audit(sealed_first([activated(audited.ASKING), past])).unpriced


# --- once for each --------------------------------------------------------------------


def test_equal_mechanisms_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    repriced: list[RecordedMechanism] = []
    refuse_less = repricing._refuse_less

    def counted(one: RecordedMechanism, priced: Mapping[str, Loss]) -> None:
        repriced.append(one)
        refuse_less(one, priced)

    priced: list[object] = []

    def counted_price(*args: Any) -> Any:
        priced.append(args)
        return price(*args)

    monkeypatch.setattr(repricing, "_refuse_less", counted)
    monkeypatch.setattr("modicum.release.stored_description.price", counted_price)
    happened: list[Body] = [activated(audited.ASKING)]
    happened += [
        PastRecorded(audited.priced(f"r-{n}", rho=f"0.00{1 + n % 2}"), DIGEST)
        for n in range(20)
    ]
    happened.append(activated(audited.WIDER, reason="wider"))
    wider = compiled(audited.WIDER).policy.digest
    happened += [
        PastRecorded(audited.priced(f"s-{n}", audited.WIDER), wider) for n in range(20)
    ]
    report = audit(sealed(happened))
    assert report.entries == 42
    assert len(repriced) == 3
    assert len(priced) == 3

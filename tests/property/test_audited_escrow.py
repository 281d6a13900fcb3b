"""The auditor of the tests on escrows: takes every honest log, finds what is forged.

It is compared with the audit of modicum in both directions, on logs of which one entry
was removed, moved, doubled or changed, and which were chained and signed again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle.auditor import Findings
from oracle.auditor import audit as audited_again
from oracle.escrow import digest_of
from samples.escrows import World
from samples.forged import chained, drawn, forged, plain

from modicum.api.local.escrow.proposal import Purpose
from modicum.core.errors import ModicumError
from modicum.ledger import Record, audit, event_of
from modicum.reports.escrow_timeline import EscrowTimeline
from modicum.reports.log_position import Placed

Event: TypeAlias = dict[str, Any]

#: Draws of which much goes out in 400 steps, raw signals among it.
FLOWING = (13, 19, 34, 37)


def findings(rows: list[Record]) -> Findings:
    return audited_again(lambda: [(one.seq, one.payload, one.hash) for one in rows])


def holds(rows: list[Record]) -> str:
    """Return why modicum's own audit refuses a log; empty if it does not."""
    try:
        audit(rows)
    except ModicumError as error:
        return str(error)
    return ""


@pytest.mark.spec("ESC-9")
@settings(max_examples=examples(60, plain=5), deadline=None)
@given(st.integers(0, 2**32))
def test_every_honest_log_is_taken(seed: int) -> None:
    rows = list(drawn(seed))
    assert chained(plain(rows)) == rows
    assert holds(rows) == ""
    assert findings(rows).mistakes == []


@pytest.mark.spec("ESC-9")
@settings(max_examples=examples(600, plain=40), deadline=None)
@given(st.sampled_from(FLOWING), st.integers(0, 2**32))
def test_what_is_forged_is_found_by_both_audits_or_is_no_forgery(
    seed: int, luck: int
) -> None:
    rows = chained(forged(plain(drawn(seed, 400)), random.Random(luck)))
    why = holds(rows)
    assume("a time that nobody can ask for" not in why)  # A reservation was moved.
    mistakes = findings(rows).mistakes
    assert bool(mistakes) == bool(why), (why, mistakes)


def test_forgeries_of_every_kind_are_tried_and_some_are_none() -> None:
    seen: Counter[bool] = Counter()
    kinds: Counter[str] = Counter()
    for luck in range(150):
        rows = chained(forged(plain(drawn(luck % 10)), random.Random(luck)))
        found = findings(rows)
        seen[bool(found.mistakes)] += 1
        kinds.update(one.split(": ")[1] for one in found.unpermitted[:1])
    assert min(seen.values()) >= 20, seen
    for kind in ("contract-proposed", "approval-given", "flow-begun", "flow-released"):
        assert kinds[kind] >= 2, kinds


@pytest.mark.spec("AUD-11")
def test_a_statement_tells_as_many_bits_as_a_plain_count() -> None:
    result: Counter[tuple[str, str]] = Counter()
    for seed in FLOWING:
        rows = drawn(seed, 400)
        story = EscrowTimeline()
        for row in rows:
            event = event_of(row, row.seq)
            story.add(Placed(row.seq, event.at, event.actor), event.body)
        story.stand_at(event_of(rows[-1], len(rows)).at)
        plainly = bits_told(plain(rows))
        found = {
            (one.person, one.data): one.disclosed for one in story.bits if one.disclosed
        }
        assert found == plainly
        assert all(one.disclosed + one.may_follow <= one.allowed for one in story.bits)
        result.update(plainly)
    assert len(result) >= 3, result


def bits_told(events: list[Event]) -> dict[tuple[str, str], int]:
    """Return what each person was told of each data set, by name."""
    contracts = {
        digest_of(one["body"]["contract"]): one["body"]["contract"]
        for one in events
        if one["kind"] == "contract-proposed"
    }
    gone = {one["body"]["contract"] for one in events if one["kind"] == "flow-released"}
    found: Counter[tuple[str, str]] = Counter()
    for digest in gone:
        one = contracts[digest]
        if one["flow"] == "raw-signal":
            bits = {0: 64, 4: 3, 20: 5}[one["terms"]["bins"]]
            for person in {one["analyst"], *one["recipients"]}:
                for data in {of for of, _ in one["data"].values()}:
                    found[person, data] += bits
    return dict(found)


# --- forgeries by name --------------------------------------------------------


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """An escrow in which answers, and scores of both kinds, went out."""
    world = World(tmp_path_factory.mktemp("escrow"))
    world.register()
    world.queried()
    world.scored()
    amir = world.office("amir")
    amir.submit_output(Purpose("out", "to know", recipients=("amir", "bea")), "q")
    amir.submit_signal(Purpose("signal", "to know"), "t")
    amir.submit_raw_signal(Purpose("raw", "to know"), "t", width=Fraction(1, 20))
    for name in ("out", "signal", "raw"):
        world.agree(name)
        amir.receive(name)
    return plain(list(world.workspace("auditor").records()))


def test_the_escrow_that_is_forged_is_honest(honest: list[Event]) -> None:
    rows = chained(honest)
    assert findings(rows).mistakes == []
    assert findings(rows).kinds["flow-released"] == 3
    assert holds(rows) == ""


def place(events: list[Event], kind: str, **body: object) -> int:
    """Return where the last entry of a kind stands, of those that say so."""
    return max(
        number
        for number, one in enumerate(events)
        if one["kind"] == kind and body.items() <= one["body"].items()
    )


def contract(events: list[Event], name: str) -> Event:
    found: Event = next(
        one["body"]["contract"]
        for one in events
        if one["kind"] == "contract-proposed" and one["body"]["contract"]["id"] == name
    )
    return found


def changed(events: list[Event], name: str, **fields: object) -> None:
    """Change a contract, and what everybody said about it."""
    found = contract(events, name)
    before, terms = digest_of(found), found["terms"]
    for key, value in fields.items():
        (terms if key in terms else found)[key] = value
    after = digest_of(found)
    for event in events:
        body = event["body"]
        for key in ("contract", "content"):
            if body.get(key) == before:
                body[key] = after
        if body.get("id") == f"contract/{before}":
            body["id"] = f"contract/{after}"


def results(events: list[Event], name: str) -> Event:
    digest = digest_of(contract(events, name))
    found: Event = events[place(events, "flow-withheld", contract=digest)]["body"]
    return dict(found["results"])


def nobody_else_agreed(events: list[Event]) -> None:
    del events[place(events, "approval-given", id="out")]


def the_analyst_agreed(events: list[Event]) -> None:
    events[place(events, "approval-given", id="out")]["actor"] = "amir"


def one_owner_agreed_twice(events: list[Event]) -> None:
    events[place(events, "approval-given", id="out")]["actor"] = "olga"


def an_owner_refused(events: list[Event]) -> None:
    events[place(events, "approval-given", id="out")]["body"]["approves"] = False


def an_owner_is_given_it(events: list[Event]) -> None:
    changed(events, "out", recipients=["amir", "olga"])


def agreement_was_not_signed(events: list[Event]) -> None:
    body = events[place(events, "data-registered")]["body"]
    body["owners"]["pavel"] = ["0f" * 32]


def it_went_to_somebody_else(events: list[Event]) -> None:
    events[place(events, "flow-released")]["body"]["to"] = "bea"


def it_was_over(events: list[Event]) -> None:
    at = events[place(events, "contract-proposed")]["at"]
    changed(events, "out", expires_at=at)


def it_was_used_once_too_often(events: list[Event]) -> None:
    changed(events, "out", uses=1)
    out = digest_of(contract(events, "out"))
    events.append(dict(events[place(events, "flow-released", contract=out)]))
    events[-1]["at"] = events[-2]["at"]


def it_was_withdrawn(events: list[Event]) -> None:
    out = digest_of(contract(events, "out"))
    where = place(events, "flow-released", contract=out)
    body = {"contract": out, "reason": "no need"}
    kind = {"kind": "contract-withdrawn", "actor": "amir", "body": body}
    events.insert(where, {**events[where], **kind})


def the_data_was_shredded(events: list[Event]) -> None:
    where = place(events, "flow-released")
    body = {"id": "people", "version": 1, "reason": "the law"}
    kind = {"kind": "data-shredded", "actor": "olga", "body": body}
    events.insert(where, {**events[where], **kind})


def exact_answers_went_out(events: list[Event]) -> None:
    changed(events, "out", result=results(events, "q")["exact"])


def an_exact_score_went_out_as_private(events: list[Event]) -> None:
    changed(events, "signal", result=results(events, "t")["exact"])


def no_disclosure_stands(events: list[Event]) -> None:
    del events[place(events, "disclosure-recorded")]


def more_bits_than_allowed(events: list[Event]) -> None:
    events[place(events, "data-registered")]["body"]["bits_max"] = 4


def more_bins_than_bits(events: list[Event]) -> None:
    changed(events, "raw", bins=2**20)


def other_results_were_withheld(events: list[Event]) -> None:
    query = digest_of(contract(events, "q"))
    where = place(events, "flow-withheld", contract=query)
    events[where]["body"]["results"]["private"] = "0f" * 32


def it_ran_without_a_charge(events: list[Event]) -> None:
    del events[place(events, "release-started")]


def it_ran_once_more_for_one_charge(events: list[Event]) -> None:
    query = digest_of(contract(events, "q"))
    where = place(events, "flow-begun", contract=query)
    again = {**events[where], "body": {"contract": query, "run": 2}}
    events.insert(where + 1, again)


def another_release_was_charged(events: list[Event]) -> None:
    ((release, _, text),) = contract(events, "q")["terms"]["charges"]
    changed(events, "q", charges=[[release, "0f" * 32, text]])


def nobody_asked(events: list[Event]) -> None:
    del events[place(events, "contract-proposed")]


def nobody_registered(events: list[Event]) -> None:
    del events[place(events, "data-registered")]


def a_stranger_registered(events: list[Event]) -> None:
    events[place(events, "data-registered")]["actor"] = "amir"


def a_run_ended_that_never_began(events: list[Event]) -> None:
    task = digest_of(contract(events, "t"))
    del events[place(events, "flow-begun", contract=task)]


@pytest.mark.spec("ESC-3")
@pytest.mark.spec("ESC-4")
@pytest.mark.spec("ESC-5")
@pytest.mark.spec("ESC-6")
@pytest.mark.spec("ESC-7")
@pytest.mark.parametrize(
    "forge",
    [
        nobody_else_agreed,
        the_analyst_agreed,
        one_owner_agreed_twice,
        an_owner_refused,
        an_owner_is_given_it,
        agreement_was_not_signed,
        it_went_to_somebody_else,
        it_was_over,
        it_was_used_once_too_often,
        it_was_withdrawn,
        the_data_was_shredded,
        exact_answers_went_out,
        an_exact_score_went_out_as_private,
        no_disclosure_stands,
        more_bits_than_allowed,
        more_bins_than_bits,
        other_results_were_withheld,
        it_ran_without_a_charge,
        it_ran_once_more_for_one_charge,
        another_release_was_charged,
        nobody_asked,
        nobody_registered,
        a_stranger_registered,
        a_run_ended_that_never_began,
    ],
)
def test_what_no_contract_permits_is_found(
    honest: list[Event], forge: Callable[[list[Event]], None]
) -> None:
    events = deepcopy(honest)
    forge(events)
    rows = chained(events)
    assert findings(rows).unpermitted
    assert holds(rows)

"""What contracts permit: the corners that luck seldom reaches."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace
from samples.contracts import SHA, activation, releases
from samples.small import compiled

from modicum.core.errors import ConflictError, InputError
from modicum.ledger import State
from modicum.ledger.log.contracts import (
    Charge,
    Contract,
    OutputTerms,
    QueryTerms,
    RawSignalTerms,
    SignalTerms,
    TaskTerms,
    Version,
    from_plain,
    to_plain,
)
from modicum.ledger.log.escrow_events import (
    ContractProposed,
    ContractWithdrawn,
    DataRegistered,
    DataShredded,
    FlowBegun,
    FlowFailed,
    FlowReleased,
    FlowWithheld,
)
from modicum.ledger.log.events import (
    EVENT_VERSION,
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    Event,
    ReleaseReserved,
    ReleaseStarted,
)
from modicum.ledger.state.flow import disclosed, disclosure_of
from modicum.release import EVERYTHING

DATA = {"t": Version("visits", 1)}
BOTH = ("exact", "private")
CHARGES = (Charge("r-1", releases()[0].content, "a query"),)


def at(day: int) -> str:
    return f"2026-01-{day:02d}T00:00:00.000000Z"


class Log:
    """A log of an escrow with one data set of olga, pavel and quin."""

    def __init__(
        self,
        quorum: int = 1,
        bits: int = 8,
        owners: Any = None,
        version: int = EVENT_VERSION,
    ) -> None:
        self.state, self.version = State(), version
        self.day = 1
        self.does("olga", activation())
        given = owners or {"olga": (), "pavel": (), "quin": ()}
        self.registered = DataRegistered(
            "visits", 1, SHA, "csv", "{}", given, quorum, 50, bits
        )
        self.does("olga", self.registered)
        for one in releases():
            digest = compiled().policy.digest
            self.does("platform", ReleaseReserved(one, digest, at(20)))

    def does(self, by: str, body: Body) -> None:
        number = self.state.seq
        event = Event(at(self.day), by, body, self.version)
        self.state.apply(event, f"{number:064x}")

    def refuses(self, by: str, body: Body, why: str) -> None:
        before = self.state.digest()
        with pytest.raises((ConflictError, InputError), match=why):
            self.does(by, body)
        assert self.state.digest() == before

    def propose(self, one: Contract) -> str:
        self.does(one.analyst, ContractProposed(one, "why"))
        return one.digest

    def agree(self, digest: str, *people: str, yes: bool = True) -> None:
        for one in people:
            self.does(one, word(self.state, digest, yes=yes))

    def run(self, digest: str) -> dict[str, str]:
        """Run something, and return what it left."""
        flow = self.state.escrow.flow(digest)
        terms = flow.contract.terms
        assert isinstance(terms, QueryTerms | TaskTerms)
        number = flow.runs + 1
        self.begin(digest, number)
        left = {one: f"{number:x}{one[:1] == 'e':x}" * 32 for one in terms.results}
        self.does("platform", FlowWithheld(digest, number, left))
        return left

    def begin(self, digest: str, number: int = 1) -> None:
        """Begin a run, with what it charges."""
        terms = self.state.escrow.flow(digest).contract.terms
        assert isinstance(terms, QueryTerms | TaskTerms)
        for one in terms.charges:
            self.does("platform", ReleaseStarted(one.release))
        self.does("platform", FlowBegun(digest, number))

    def asked(self, **other: Any) -> Contract:
        first = releases()[0]
        charge = Charge(first.id, first.content, "a query")
        own = Contract(
            "q-1", "amir", (), DATA, "", at(20), 1, QueryTerms((charge,), BOTH)
        )
        return replace(own, **other)

    def until_scores(self) -> tuple[str, dict[str, str]]:
        """Return a task that has run, and what it left."""
        query = self.propose(self.asked())
        self.agree(query, "olga", "pavel")
        self.run(query)
        terms = TaskTerms("{}", "wasm", 60, 512, BOTH)
        task = self.propose(self.asked(id="t-1", parent=query, uses=3, terms=terms))
        self.agree(task, "olga", "pavel")
        return task, self.run(task)

    def raw(self, name: str, bins: int, **other: Any) -> Contract:
        task = self.state.escrow.names["t-1"]
        result = self.state.escrow.flow(task).results["exact"]
        terms = RawSignalTerms(result, bins)
        given = {"recipients": ("amir",), "uses": 5, **other}
        return self.asked(id=name, parent=task, terms=terms, **given)

    def disclose(self, digest: str) -> None:
        contract = self.state.escrow.flow(digest).contract
        name, what = disclosure_of(digest), disclosed(contract)
        body = DisclosureRecorded(name, what, (), EVERYTHING, "", {})
        self.does(contract.recipients[0], body)


def restored(state: State) -> State:
    return State.restored(json.loads(json.dumps(state.small_to_plain())))


def word(state: State, digest: str, *, yes: bool = True) -> ApprovalGiven:
    name = state.escrow.flow(digest).contract.id
    return ApprovalGiven("contract", name, digest, yes, ("owner",), "so")


@pytest.mark.spec("ESC-1")
def test_a_contract_is_known_by_all_that_it_says() -> None:
    log = Log()
    one = log.asked()
    others = [
        replace(one, id="other"),
        replace(one, analyst="bea"),
        replace(one, recipients=("amir",)),
        replace(one, data={"t": Version("visits", 2)}),
        replace(one, data={"u": Version("visits", 1)}),
        replace(one, parent=SHA),
        replace(one, expires_at=at(21)),
        replace(one, uses=2),
        replace(one, terms=QueryTerms(CHARGES, ("private",))),
        replace(one, terms=QueryTerms((Charge("r-1", SHA, "a query"),), BOTH)),
        replace(one, terms=OutputTerms(SHA)),
        replace(one, terms=SignalTerms(SHA)),
        replace(one, terms=RawSignalTerms(SHA, 20)),
        replace(one, terms=RawSignalTerms(SHA, 21)),
        replace(one, terms=TaskTerms("{}", "wasm", 60, 512, BOTH)),
        replace(one, terms=TaskTerms("{}", "wasm", 61, 512, BOTH)),
        replace(one, terms=TaskTerms("{ }", "wasm", 60, 512, BOTH)),
        replace(one, terms=TaskTerms("{}", "bubblewrap", 60, 512, BOTH)),
    ]
    assert len({each.digest for each in (one, *others)}) == len(others) + 1
    for each in others:
        assert from_plain(to_plain(each)) == each
    # Nobody agreed to a contract that says anything else.
    digest = log.propose(one)
    log.agree(digest, "olga")
    changed = log.propose(replace(one, id="q-2"))
    log.refuses("platform", FlowBegun(changed, 1), "1 more must approve")
    log.begin(digest)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "modicum-contract/v2"),
        ("flow", "exact-output"),
        ("recipients", ["bea", "amir"]),
        ("recipients", ["amir", "amir"]),
        ("data", {"t": ["visits"]}),
        ("data", {"t": ["visits", -1]}),
        ("expires_at", "tomorrow"),
        ("uses", True),
        ("parent", "short"),
    ],
)
def test_a_contract_of_another_form_is_none(field: str, value: object) -> None:
    plain = to_plain(Log().asked())
    with pytest.raises(ValueError, match=r"must|has an id"):
        from_plain({**plain, field: value})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("results", []),
        ("results", ["private", "exact"]),
        ("results", ["raw"]),
        ("charges", [["r-1", SHA]]),
        ("charges", [["r-1", "short", "text"]]),
    ],
)
def test_terms_of_another_form_are_none(field: str, value: object) -> None:
    plain: Any = to_plain(Log().asked())
    terms: Any = plain["terms"]
    changed: Any = {**terms, field: value}
    with pytest.raises(ValueError, match=r"must|a charge has"):
        from_plain({**plain, "terms": changed})
    with pytest.raises(ValueError, match="unknown"):
        from_plain({**plain, "terms": {**terms, "more": 1}})


@pytest.mark.spec("ESC-2")
def test_whose_data_it_is_never_changes() -> None:
    log = Log()
    again = structs.replace(log.registered, version=2)
    for other in (
        structs.replace(again, owners={"olga": ()}),
        structs.replace(again, owners={**again.owners, "olga": (SHA,)}),
        structs.replace(again, quorum=2),
        structs.replace(again, bits_max=9),
        structs.replace(again, contracts_max=1),
    ):
        log.refuses("olga", other, "other owners or limits")
    log.refuses("amir", again, "does not own")
    log.does("pavel", again)
    log.refuses("pavel", again, "version 2 .* comes after version 2")
    log.refuses("pavel", structs.replace(again, version=1), "comes after version 2")
    log.does("olga", structs.replace(again, version=7))  # Numbers may be left out.
    log.does("quin", DataShredded("visits", 1, "law"))
    log.refuses("quin", DataShredded("visits", 1, "law"), "already shredded")
    log.refuses("quin", DataShredded("visits", 3, "law"), "has no version 3")
    log.refuses("amir", DataShredded("visits", 2, "law"), "does not own")


@pytest.mark.spec("ESC-2")
@pytest.mark.parametrize(
    ("owners", "quorum", "why"),
    [
        ({"olga": (), "Olga ": ()}, 1, "twice"),
        ({"olga": ()}, 2, "1 owners"),
        ({"olga": ()}, 0, "at least one"),
        ({f"o-{n}": () for n in range(101)} | {"olga": ()}, 1, "1 to 100"),
    ],
)
def test_data_has_owners_who_can_agree(
    owners: dict[str, tuple[str, ...]], quorum: int, why: str
) -> None:
    log = Log()
    body = structs.replace(log.registered, id="wages", owners=owners, quorum=quorum)
    with pytest.raises(ConflictError) as caught:
        log.does("olga", body)
    (problem,) = caught.value.problems
    assert why in f"{problem.message} {problem.help}"


@pytest.mark.spec("ESC-3")
def test_the_last_word_of_an_owner_counts_and_a_refusal_blocks() -> None:
    log = Log(quorum=2)
    digest = log.propose(log.asked())
    begin = FlowBegun(digest, 1)
    log.refuses("platform", begin, "2 more must approve for `visits`: `olga`, `pavel`")
    log.agree(digest, "olga", "pavel")
    log.agree(digest, "quin", yes=False)
    log.refuses("platform", begin, "`quin` rejected")
    log.agree(digest, "olga", yes=False)
    log.refuses("platform", begin, "`olga`, `quin` rejected")
    log.agree(digest, "quin")
    log.refuses("platform", begin, "`olga` rejected")
    log.agree(digest, "olga")
    log.begin(digest)


@pytest.mark.spec("ESC-3")
def test_who_asks_or_is_given_it_does_not_count() -> None:
    log = Log(quorum=2)
    own = log.asked(analyst="olga")
    digest = log.propose(own)
    log.agree(digest, "olga", "pavel")
    log.refuses("platform", FlowBegun(digest, 1), "1 more must approve .*: `quin`")
    query = log.propose(log.asked(id="q-2"))
    log.agree(query, "pavel", "quin")
    left = log.run(query)
    out = log.asked(id="o", parent=query, terms=OutputTerms(left["private"]), uses=2)
    given = log.propose(replace(out, recipients=("PAVEL", "amir")))
    log.agree(given, "pavel", "quin")
    log.refuses("amir", FlowReleased(given, "amir"), "1 more must approve .*: `olga`")
    log.agree(given, "olga")
    log.does("amir", FlowReleased(given, "amir"))
    nobody = replace(out, id="o-2", recipients=("olga", "pavel"))
    log.refuses("amir", ContractProposed(nobody, "why"), "too few owners")


@pytest.mark.spec("ESC-3")
def test_who_proposes_for_somebody_else_does_not_count() -> None:
    log = Log(quorum=2)
    contract = log.asked()
    log.does("olga", ContractProposed(contract, "for amir"))
    log.agree(contract.digest, "olga", "pavel")
    begin = FlowBegun(contract.digest, 1)
    log.refuses("platform", begin, "1 more must approve .*: `quin`")
    log.agree(contract.digest, "quin")
    log.begin(contract.digest)
    alone = Log(owners={"olga": ()})
    log = Log(quorum=3)
    for one, by in ((alone, "olga"), (log, "pavel")):
        one.refuses(by, ContractProposed(contract, "for amir"), "too few owners")


@pytest.mark.spec("ESC-3")
@pytest.mark.spec("ESC-17")
def test_before_version_5_who_proposed_counted() -> None:
    """Logs of then are read as they were meant; so are contracts that go on."""
    log = Log(owners={"olga": ()}, version=4)
    contract = log.asked()
    log.does("olga", ContractProposed(contract, "for amir"))
    log.agree(contract.digest, "olga")
    log.version = 5
    assert restored(log.state).escrow == log.state.escrow
    log.begin(contract.digest)
    log.version = 4
    log.refuses("olga", Annotated("", "so"), "its version is older")


@pytest.mark.spec("ESC-14")
def test_rows_are_replaced_by_as_many_owners_as_must_agree() -> None:
    log = Log(quorum=2)
    again = structs.replace(log.registered, version=2)
    log.does("olga", again)
    new = {"t": Version("visits", 2)}
    proposal = ContractProposed(log.asked(data=new), "why")
    log.refuses("amir", proposal, "version 2 of `visits` awaits its owners")
    assert log.state.escrow.data["visits"].newest == 1
    assert restored(log.state).escrow == log.state.escrow
    data = log.state.escrow.data["visits"]
    content = data.versions[2].content(Version("visits", 2))
    word = ApprovalGiven("data", "visits", content, True, ("owner",), "so")
    log.refuses("amir", word, "is not an owner")
    log.refuses("pavel", structs.replace(word, roles=("officer",)), "is not an")
    log.refuses("pavel", structs.replace(word, id="wages"), "no version of .* awaits")
    log.refuses("pavel", structs.replace(word, content=SHA), "no version of .* awaits")
    log.does("quin", structs.replace(word, approves=False))
    log.does("pavel", word)  # One refusal blocks.
    log.refuses("amir", proposal, "awaits its owners")
    log.does("quin", word)
    log.refuses("quin", word, "no version of .* awaits")
    assert data.newest == 2
    log.does("amir", proposal)
    # What is not agreed to can be shredded, and is agreed to no more.
    log.does("pavel", structs.replace(again, version=3))
    third = data.versions[3].content(Version("visits", 3))
    log.does("quin", DataShredded("visits", 3, "a mistake"))
    log.refuses("olga", structs.replace(word, content=third), "no version of .* awaits")


@pytest.mark.spec("ESC-14")
def test_registering_is_no_agreement_of_an_owner_with_keys() -> None:
    log = Log(owners={"olga": (SHA,), "pavel": ()})
    log.does("olga", structs.replace(log.registered, version=2))
    assert log.state.escrow.data["visits"].newest == 1
    log.does("pavel", structs.replace(log.registered, version=3))
    assert log.state.escrow.data["visits"].newest == 3


@pytest.mark.spec("ESC-14")
def test_before_version_5_one_owner_replaced_rows() -> None:
    log = Log(quorum=2, version=4)
    log.does("olga", structs.replace(log.registered, version=2))
    log.version = 5
    assert log.state.escrow.data["visits"].newest == 2
    log.does("amir", ContractProposed(log.asked(data={"t": Version("visits", 2)}), ""))


@pytest.mark.spec("ESC-3")
def test_only_agreement_by_the_right_key_counts() -> None:
    log = Log(owners={"olga": (SHA,)})
    digest = log.propose(log.asked())
    log.agree(digest, "olga")
    log.refuses("platform", FlowBegun(digest, 1), "1 more must approve")
    log.agree(digest, "olga", yes=False)  # A refusal counts all the same …
    log.refuses("platform", FlowBegun(digest, 1), "`olga` rejected")
    log.agree(digest, "olga")  # … and what does not count takes nothing back.
    log.refuses("platform", FlowBegun(digest, 1), "`olga` rejected")


@pytest.mark.spec("ESC-3")
@pytest.mark.spec("ESC-7")
def test_an_exact_score_takes_two_people() -> None:
    log = Log(bits=64)
    log.until_scores()
    digest = log.propose(log.raw("s", 0))
    log.disclose(digest)
    log.agree(digest, "olga")
    log.refuses("amir", FlowReleased(digest, "amir"), "2 people must approve, and 1")
    log.agree(digest, "quin")
    log.does("amir", FlowReleased(digest, "amir"))
    alone = Log(bits=64, owners={"olga": ()})
    query = alone.propose(alone.asked())
    alone.agree(query, "olga")
    alone.run(query)
    terms = TaskTerms("{}", "wasm", 60, 512, BOTH)
    task = alone.propose(alone.asked(id="t-1", parent=query, terms=terms))
    alone.agree(task, "olga")
    alone.run(task)
    alone.refuses("amir", ContractProposed(alone.raw("s", 0), "why"), "too few owners")
    alone.propose(alone.raw("s", 4))


@pytest.mark.spec("ESC-4")
def test_a_use_is_counted_whatever_becomes_of_it() -> None:
    log = Log()
    digest = log.propose(log.asked())
    log.agree(digest, "olga")
    log.begin(digest)
    log.refuses("platform", FlowBegun(digest, 2), "used 1 times")
    log.does("platform", FlowFailed(digest, 1))
    log.refuses("platform", FlowBegun(digest, 2), "used 1 times")
    log.refuses("platform", FlowFailed(digest, 1), "no run 1 of it was started")


@pytest.mark.spec("ESC-4")
def test_what_ended_was_withdrawn_or_shredded_flows_no_more() -> None:
    for over, why in (
        (lambda log, digest: setattr(log, "day", 20), "ended at 2026-01-20"),
        (
            lambda log, digest: log.does("amir", ContractWithdrawn(digest, "no")),
            "withdrawn",
        ),
        (
            lambda log, digest: log.does("olga", DataShredded("visits", 1, "law")),
            "version 1 of `visits` was shredded",
        ),
    ):
        log = Log()
        task, left = log.until_scores()
        terms = SignalTerms(left["private"])
        own = log.asked(
            id="s", parent=task, terms=terms, uses=9, recipients=("amir", "bea")
        )
        digest = log.propose(own)
        log.agree(digest, "olga")
        log.does("bea", FlowReleased(digest, "bea"))
        over(log, digest)
        log.refuses("bea", FlowReleased(digest, "bea"), why)


@pytest.mark.spec("ESC-5")
def test_a_run_begins_only_with_what_it_charges() -> None:
    log, why = Log(), "was not started for it just before"
    first, second = releases()[:2]
    other = Charge(first.id, second.content, "another query")
    digest = log.propose(log.asked(terms=QueryTerms((other,), ("private",))))
    log.agree(digest, "olga")
    log.does("platform", ReleaseStarted(first.id))
    log.refuses("platform", FlowBegun(digest, 1), why)
    unknown = Charge("r-99", first.content, "a query")
    nobody = log.propose(log.asked(id="q-2", terms=QueryTerms((unknown,), BOTH)))
    log.agree(nobody, "olga")
    log.refuses("platform", FlowBegun(nobody, 1), why)


@pytest.mark.spec("ESC-5")
def test_a_charge_pays_for_one_run_alone() -> None:
    log, why = Log(), "was not started for it just before"
    first = log.propose(log.asked())
    again = log.propose(log.asked(id="q-2"))  # The same release, asked for twice.
    for one in (first, again):
        log.agree(one, "olga")
    begin, start = FlowBegun(again, 1), ReleaseStarted("r-1")
    log.does("platform", start)  # It may have run anywhere: then it is too late.
    log.does("olga", Annotated("", "hello"))
    log.refuses("platform", begin, why)
    other = Log()
    first = other.propose(other.asked())
    again = other.propose(other.asked(id="q-2"))
    for one in (first, again):
        other.agree(one, "olga")
    other.does("platform", start)
    other.refuses("amir", begin, why)  # Somebody else started it …
    other.day = 2
    other.refuses("platform", begin, why)  # … or earlier.
    other.day = 1
    other.does("platform", FlowBegun(first, 1))
    other.refuses("platform", begin, why)
    other.refuses("platform", start, "started")
    # It is so after a start from a snapshot, too.
    both = Log()
    first = both.propose(both.asked())
    both.agree(first, "olga")
    both.does("platform", start)
    assert restored(both.state).just_started == both.state.just_started
    assert both.state.just_started.releases == ("r-1",)


@pytest.mark.spec("ESC-5")
def test_the_first_run_that_ends_is_the_one_that_counts() -> None:
    log = Log()
    query = log.propose(log.asked())
    log.agree(query, "olga")
    log.run(query)
    terms = TaskTerms("{}", "wasm", 60, 512, BOTH)
    task = log.propose(log.asked(id="t-1", parent=query, uses=3, terms=terms))
    log.agree(task, "olga")
    log.does("platform", FlowBegun(task, 1))  # Whoever ran it died.
    log.refuses("platform", FlowBegun(task, 1), "next run is 2")
    log.does("platform", FlowBegun(task, 2))
    left = {"exact": "1" * 64, "private": "2" * 64}
    log.refuses("platform", FlowWithheld(task, 3, left), "no run 3 of it was started")
    log.refuses("platform", FlowWithheld(task, 2, {"exact": SHA}), "these differ")
    log.does("platform", FlowWithheld(task, 2, left))
    log.refuses("platform", FlowBegun(task, 3), "its results are withheld")
    late = FlowWithheld(task, 1, {"exact": "3" * 64, "private": "4" * 64})
    log.refuses("platform", late, "it already has results")
    log.does("platform", FlowFailed(task, 1))
    assert log.state.escrow.flow(task).results == left


@pytest.mark.spec("ESC-5")
def test_a_score_of_blocks_is_private_and_charged() -> None:
    log = Log()
    query = log.propose(log.asked())
    log.agree(query, "olga")
    log.run(query)
    for results, charges, why in (
        (BOTH, CHARGES, "is the only score"),
        (("exact",), CHARGES, "is the only score"),
        (("private",), (), "only a score of blocks is charged"),
    ):
        terms = TaskTerms("{}", "wasm", 60, 512, results, 20, charges)
        one = log.asked(id="t-1", parent=query, terms=terms)
        log.refuses("amir", ContractProposed(one, "why"), why)
    second = releases()[1]
    charge = Charge(second.id, second.content, "a score")
    terms = TaskTerms("{}", "wasm", 60, 512, ("private",), 20, (charge,))
    log.propose(log.asked(id="t-1", parent=query, terms=terms))


@pytest.mark.spec("ESC-6")
def test_what_goes_out_is_what_was_agreed_to() -> None:
    log = Log()
    task, left = log.until_scores()
    query = log.state.escrow.names["q-1"]
    answers = log.state.escrow.flow(query).results
    out = {"recipients": ("amir",), "uses": 5}
    for wrong, parent, why in (
        (OutputTerms(answers["exact"]), query, "not the private result"),
        (OutputTerms(left["private"]), task, "its predecessor is not a query"),
        (SignalTerms(left["exact"]), task, "not the private result"),
        (SignalTerms(answers["private"]), query, "its predecessor is not a task"),
        (RawSignalTerms(answers["exact"], 4), query, "its predecessor is not a task"),
        (RawSignalTerms(left["private"], 4), task, "not the exact result"),
        (OutputTerms(SHA), query, "not the private result"),
        (OutputTerms(answers["private"]), SHA, "predecessor is unknown"),
    ):
        contract = log.asked(id="o", parent=parent, terms=wrong, **out)
        log.refuses("amir", ContractProposed(contract, "why"), why)
    output = log.propose(
        log.asked(id="o", parent=query, terms=OutputTerms(answers["private"]), **out)
    )
    log.agree(output, "olga")
    log.refuses("bea", FlowReleased(output, "bea"), "not among its recipients")
    log.refuses("amir", FlowReleased(query, "amir"), "it discloses nothing")
    log.refuses("platform", FlowBegun(output, 1), "nothing runs under it")
    log.does("amir", FlowReleased(output, "amir"))


@pytest.mark.spec("ESC-7")
def test_bits_are_counted_by_who_is_told() -> None:
    log = Log(bits=8)  # 4 bins or none are 3 bits, 20 are 5.
    log.until_scores()
    first = log.propose(log.raw("s-1", 20))
    log.refuses(
        "amir", ContractProposed(log.raw("s-2", 20), "why"), "5 are disclosed or"
    )
    second = log.propose(log.raw("s-2", 4, recipients=("bea",)))
    log.refuses(
        "amir", ContractProposed(log.raw("s-3", 1), "why"), "8 are disclosed or"
    )
    log.does("amir", ContractWithdrawn(second, "no need"))
    third = log.propose(log.raw("s-3", 4, expires_at=at(3)))
    log.day = 3  # What ended and told nothing is free again.
    log.propose(log.raw("s-4", 4, expires_at=at(5)))
    log.disclose(first)
    log.agree(first, "olga")
    log.does("amir", FlowReleased(first, "amir"))
    log.does("amir", ContractWithdrawn(first, "seen"))
    log.day = 21  # What was told stays told.
    late = {"expires_at": at(30)}
    log.refuses(
        "amir", ContractProposed(log.raw("s-5", 8, **late), "x"), "5 are disclosed"
    )
    log.propose(log.raw("s-5", 7, **late))
    assert log.state.escrow.flow(third).released == 0


@pytest.mark.spec("ESC-7")
def test_a_score_on_exact_answers_goes_out_after_its_disclosure() -> None:
    log = Log()
    log.until_scores()
    digest = log.propose(log.raw("s-1", 20))
    log.agree(digest, "olga")
    log.refuses("amir", FlowReleased(digest, "amir"), "record the disclosure")
    log.does("olga", DisclosureRecorded("leak", "x", (), EVERYTHING, "", {}))
    log.refuses("amir", FlowReleased(digest, "amir"), "record the disclosure")
    log.disclose(digest)
    log.does("amir", FlowReleased(digest, "amir"))


@pytest.mark.parametrize(
    ("bins", "bits"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (20, 5), (0, 64)]
)
def test_bits_name_one_of_the_bins_or_none(bins: int, bits: int) -> None:
    assert RawSignalTerms(SHA, bins).bits == bits


@pytest.mark.spec("ESC-8")
def test_open_contracts_are_limited_by_analyst_and_data_set() -> None:
    log = Log()
    small = structs.replace(log.registered, id="wages", contracts_max=2)
    log.does("olga", small)
    data = {"t": Version("wages", 1)}
    first = log.propose(log.asked(data=data))
    log.propose(log.asked(id="q-2", data=data, analyst="AMIR "))
    third = log.asked(id="q-3", data={**data, "u": Version("visits", 1)})
    log.refuses(
        "amir",
        ContractProposed(third, "why"),
        "already has 2 open contracts on `wages`",
    )
    log.propose(replace(third, id="q-4", analyst="bea"))
    log.propose(log.asked(id="q-5"))
    log.agree(first, "olga")
    log.run(first)  # What has run is not open any more.
    log.propose(third)


@pytest.mark.spec("ESC-8")
def test_who_proposes_asks_for_themselves_or_owns_the_data() -> None:
    log = Log()
    log.refuses("bea", ContractProposed(log.asked(), "why"), "neither its analyst nor")
    log.does("pavel", ContractProposed(log.asked(), "for amir"))
    digest = log.state.escrow.names["q-1"]
    log.refuses("quin", ContractWithdrawn(digest, "no"), "neither its requester")
    log.does("pavel", ContractWithdrawn(digest, "no"))
    log.refuses("amir", ContractWithdrawn(digest, "no"), "already withdrawn")
    log.refuses("olga", word(log.state, digest), "withdrawn")
    log.agree(digest, "olga", yes=False)
    log.refuses("bea", word(log.state, digest), "owns none of its data")
    log.refuses("amir", ContractWithdrawn(SHA, "no"), "no contract has the digest")


@pytest.mark.spec("ESC-8")
def test_who_would_be_given_something_may_do_without_it() -> None:
    """It counts among what they may be told, whoever named them."""
    log = Log()
    task, left = log.until_scores()
    terms = RawSignalTerms(left["exact"], 9)
    given = {"parent": task, "uses": 9, "recipients": ("bea",)}
    one = log.propose(log.asked(id="raw-1", terms=terms, **given))
    for nobody in ("olga", "quin"):
        log.refuses(nobody, ContractWithdrawn(one, "no"), "neither its requester")
    log.does("Bea ", ContractWithdrawn(one, "no need"))
    log.refuses("olga", word(log.state, one), "withdrawn")
    assert not log.state.escrow.flow(one).counts_bits(log.state.at)


# --- who does what -----------------------------------------------------------------


@pytest.mark.spec("ESC-5")
def test_who_began_a_run_ends_it() -> None:
    log = Log()
    digest = log.propose(log.asked())
    log.agree(digest, "olga")
    log.begin(digest)
    left = {"private": SHA, "exact": SHA}
    log.refuses(
        "amir", FlowWithheld(digest, 1, left), "no run 1 of it was started by `amir`"
    )
    log.refuses("amir", FlowFailed(digest, 1), "no run 1 of it was started by `amir`")
    log.does("platform", FlowWithheld(digest, 1, left))


@pytest.mark.spec("ESC-6")
def test_nobody_receives_for_somebody_else() -> None:
    log = Log()
    query = log.propose(log.asked())
    log.agree(query, "olga")
    left = log.run(query)
    terms = OutputTerms(left["private"])
    given = {"recipients": ("amir",), "uses": 1, "parent": query}
    digest = log.propose(log.asked(id="o", terms=terms, **given))
    log.agree(digest, "olga")
    log.refuses("bea", FlowReleased(digest, "amir"), "`bea` cannot receive")
    log.does("amir", FlowReleased(digest, "amir"))


@pytest.mark.spec("ESC-7")
def test_the_escrow_discloses_in_words_of_its_own() -> None:
    log = Log()
    log.until_scores()
    contract = log.raw("s-1", 20)
    name, what = disclosure_of(contract.digest), disclosed(contract)
    early = DisclosureRecorded(name, what, (), EVERYTHING, "", {})
    log.does("olga", early)  # Nothing is called so yet …
    log.refuses("amir", ContractProposed(contract, "x"), "already recorded")
    digest = log.propose(log.raw("s-2", 20))
    second = log.state.escrow.flow(digest).contract
    name, what = disclosure_of(digest), disclosed(second)
    assert "20 bins (at most 5 bits), to amir" in what
    other = DisclosureRecorded(name, "a map", (), EVERYTHING, "", {})
    log.refuses("amir", other, "described differently")
    right = DisclosureRecorded(name, what, (), EVERYTHING, "", {})
    log.refuses("olga", right, "is not a recipient of its disclosure")
    log.does("amir", right)


@pytest.mark.spec("ESC-2")
@pytest.mark.parametrize(
    "odd",
    [
        {"contracts_max": 0},
        {"contracts_max": -1},
        {"bits_max": -1},
        {"version": 0},
        {"owners": {"olga": (SHA.upper(),)}},
        {"owners": {"olga": ("f" * 63,)}},
        {"owners": {"olga": (SHA + "\n",)}},
    ],
)
def test_no_data_set_has_odd_limits_or_keys(odd: dict[str, Any]) -> None:
    log = Log()
    first = structs.replace(log.registered, id="wages", quorum=1)
    log.refuses("olga", structs.replace(first, **odd), "limits of|not a public key")
    log.does("olga", first)


@pytest.mark.spec("ESC-8")
@pytest.mark.parametrize("odd", [{"seconds": -5}, {"memory_mib": -1}, {"blocks": -1}])
def test_no_task_has_less_than_no_time(odd: dict[str, Any]) -> None:
    log = Log()
    query = log.propose(log.asked())
    log.agree(query, "olga")
    log.run(query)
    terms = TaskTerms("{}", "wasm", 5, 64, ("private",))
    task = log.asked(id="t", parent=query, terms=structs.replace(terms, **odd))
    log.refuses("amir", ContractProposed(task, "x"), "no time or no memory")
    log.propose(log.asked(id="t", parent=query, terms=terms))

"""The verbs of the escrow, from registering data to receiving a signal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from samples.audited import key
from samples.escrows import (
    OWNED,
    POLICY,
    PROGRAM,
    ROWS,
    TABLES,
    DictVault,
    World,
    query,
)

from modicum.api.local.escrow import proposal
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.programs import program_text
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.ports.escrow import Limits, Sealed
from modicum.core.errors import (
    ApprovalError,
    ConflictError,
    InputError,
    ModicumError,
    StaleError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program, Range
from modicum.ledger.log.contracts import TaskTerms, Version
from modicum.ledger.log.escrow_events import ContractProposed
from modicum.policy.compiler import compile_text
from modicum.system.clock import FixedClock


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    found.register()
    return found


def kinds(world: World) -> list[str]:
    from modicum.ledger import event_of

    records = world.workspace("auditor").records()
    return [event_of(one, one.seq).body.kind for one in records]


# --- the whole way --------------------------------------------------------------


def test_the_protocol_from_queries_to_the_signal(world: World) -> None:
    amir = world.office("amir")
    flow = amir.submit_query(Purpose("q", "to know"), [query("r-1")], exact=True)
    assert flow.contract.flow == "query"
    assert flow.contract.data == {"people": Version("people", 1)}
    with pytest.raises(ConflictError, match="2 more must approve"):
        amir.run("q")
    world.agree("q")
    assert amir.run("q").denied is None
    assert set(amir.show("q").flow.results) == {"exact", "private"}

    amir.submit_output(Purpose("o", "to know"), "q")
    with pytest.raises(ConflictError, match="2 more must approve"):
        amir.receive("o")
    world.agree("o")
    output = amir.receive("o")
    (rows,) = [one["rows"] for one in (output.answers or {}).values()]
    assert output.private
    assert [row["keys"] for row in rows] == [["north"], ["south"]]
    assert abs(Fraction(rows[0]["answers"][0]["value"]) - 150) < 30

    amir.submit_task(Purpose("t", "to know"), "q", PROGRAM)
    world.agree("t")
    amir.run("t")
    amir.submit_signal(Purpose("s", "to know"), "t")
    amir.submit_raw_signal(Purpose("raw", "to know"), "t", width=Fraction(1, 20))
    world.agree("s")
    with pytest.raises(ConflictError, match="2 more must approve"):
        amir.receive("raw")
    signal = amir.receive("s")
    assert signal.private
    assert signal.score is not None
    value = Fraction(rows[0]["answers"][0]["value"]) / 300
    assert abs(Fraction(signal.score) - value) < Fraction(1, 10**9)
    world.agree("raw")
    raw = amir.receive("raw")
    assert not raw.private
    assert raw.score is None
    assert raw.bin == {"low": "0.5", "high": "0.55"}
    assert not raw.view.differentially_private
    assert world.workspace("auditor").verify().entries == len(kinds(world))


def test_the_ledger_tells_of_each_step_before_it_is_taken(world: World) -> None:
    world.queried()
    amir = world.office("amir")
    assert kinds(world)[-4:] == [
        "release-reserved",
        "release-started",
        "flow-begun",
        "flow-withheld",
    ]
    amir.submit_output(Purpose("o", "to know"), "q")
    world.agree("o")
    amir.receive("o")
    assert kinds(world)[-2:] == ["flow-released", "release-posted"]
    amir.receive("o")
    assert kinds(world)[-2:] == ["release-posted", "flow-released"]
    world.scored()
    amir.submit_raw_signal(Purpose("raw", "to know"), "t", width=Fraction(1, 4))
    world.agree("raw")
    amir.receive("raw")
    assert kinds(world)[-2:] == ["disclosure-recorded", "flow-released"]
    amir.receive("raw")
    assert kinds(world)[-2:] == ["flow-released", "flow-released"]


def test_exact_answers_are_exact_and_runs_see_one_kind_each(world: World) -> None:
    world.queried(rho="0.000001")  # Noise that is 0 in no lifetime.
    world.scored()
    # What saw exact answers runs last: caches of the machine may tell the next run.
    private, exact = (tables["r-q"] for tables, _ in world.equipment.box.given)
    assert exact.rows == (("north", 150), ("south", 150))
    assert private.columns == exact.columns == ("town", "people")
    assert private.rows != exact.rows
    assert all(reference is None for _, reference in world.equipment.box.given)


def test_a_program_that_compares_has_a_score_on_exact_answers_alone(
    world: World,
) -> None:
    code = b"""\
def score(tables, arguments, reference):
    (exact,), (private,) = tables.values(), reference.values()
    return abs(exact["rows"][0][1] - private["rows"][0][1]) / 300
"""
    program = Program("wasm", code, {}, Range(Fraction(0), Fraction(1)), True)
    world.queried()
    world.scored(program=program)
    assert set(world.office("amir").show("t").flow.results) == {"exact"}
    ((_, reference),) = world.equipment.box.given
    assert reference is not None
    with pytest.raises(ConflictError, match="no private result"):
        world.office("amir").submit_signal(Purpose("s", "to know"), "t")


SHARES_A_KERNEL = replace(PROGRAM, language="python")
TEN = ByBlocks(10, Fraction(1))


@pytest.mark.spec("ESC-13")
def test_own_code_that_shares_a_kernel_is_given_private_answers_alone(
    world: World,
) -> None:
    """Else it could leave the next run signs of the exact ones, and none is counted."""
    world.queried(rho="0.000001")
    world.scored(program=SHARES_A_KERNEL)
    assert set(world.office("amir").show("t").flow.results) == {"private"}
    ((tables, _),) = world.equipment.box.given
    assert tables["r-q"].rows != (("north", 150), ("south", 150))
    with pytest.raises(ConflictError, match="no exact result") as caught:
        world.office("amir").submit_raw_signal(Purpose("r", "to know"), "t", width=None)
    assert "on exact answers" in caught.value.problems[0].help


@pytest.mark.spec("ESC-13")
@pytest.mark.parametrize("tier", ["bubblewrap", "gvisor"])
@pytest.mark.parametrize(("compares", "blocks"), [(True, None), (False, TEN)])
def test_own_code_that_shares_a_kernel_and_needs_exact_answers_is_refused(
    world: World, tier: str, compares: bool, blocks: ByBlocks | None
) -> None:
    world.queried()
    program = replace(SHARES_A_KERNEL, compares=compares)
    ask = world.office("amir").submit_task
    with pytest.raises(InputError, match="may not see exact answers") as caught:
        ask(Purpose("t", "to know"), "q", program, tier=tier, blocks=blocks)
    assert "catalogue" in caught.value.problems[0].help
    assert [one.contract.id for one in world.office("amir").contracts()] == ["q"]


@pytest.mark.spec("ESC-13")
@pytest.mark.parametrize(
    ("compares", "blocks"), [(False, None), (True, None), (False, TEN)]
)
def test_a_contract_of_an_earlier_version_gives_it_no_exact_answers(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    compares: bool,
    blocks: ByBlocks | None,
) -> None:
    world.queried()
    program = replace(SHARES_A_KERNEL, compares=compares)
    amir = world.office("amir")
    with monkeypatch.context() as earlier:
        earlier.setattr(proposal, "may_see_exact", lambda *_: True)
        earlier.setattr(proposal, "refuse_exact", lambda *_: None)
        amir.submit_task(Purpose("t", "to know"), "q", program, blocks=blocks)
    world.agree("t")
    with pytest.raises(InputError, match="may not see exact answers"):
        amir.run("t")
    assert world.equipment.box.turns == []
    assert amir.show("t").flow.runs == 0
    assert kinds(world).count("release-reserved") == 1  # That of the query.


@pytest.mark.spec("ESC-13")
def test_own_code_that_calls_itself_vetted_gets_no_exact_answers(world: World) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "to know"), "q", PROGRAM)
    honest = world.office("amir").show("t").flow.contract
    assert isinstance(honest.terms, TaskTerms)
    program = program_text(replace(SHARES_A_KERNEL, catalogue="accuracy@1"))
    terms = structs.replace(honest.terms, program=program, tier="bubblewrap")
    proposed = ContractProposed(structs.replace(honest, id="f", terms=terms), "why not")
    world.workspace("amir").turn(lambda entry: entry.add(proposed))
    world.agree("f")
    with pytest.raises(VerificationError, match="claims to be `accuracy@1`"):
        world.office("amir").run("f")
    assert world.equipment.box.turns == []


# --- what is refused ---------------------------------------------------------------


def test_only_recipients_receive(world: World) -> None:
    world.queried()
    world.office("amir").submit_output(Purpose("o", "to know"), "q")
    world.agree("o")
    for other in ("bea", "olga", "AMIR"):
        with pytest.raises(ConflictError, match="not among its recipients"):
            world.office(other).receive("o")
    with pytest.raises(InputError, match="nothing runs under"):
        world.office("amir").run("o")
    for name in ("q", "o "):
        with pytest.raises(ModicumError, match=r"withheld|unknown contract"):
            world.office("amir").receive(name)


def test_what_is_refused_reads_nothing(world: World) -> None:
    vault = world.equipment.vault
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1")])
    with pytest.raises(ConflictError):
        world.office("amir").run("q")
    assert vault.opened == []
    world.agree("q")
    world.office("olga").reject("q", reason="no")
    with pytest.raises(ConflictError, match="`olga` rejected"):
        world.office("amir").run("q")
    assert vault.opened == []
    assert "release-reserved" not in kinds(world)


def test_a_denied_query_uses_nothing_up(world: World) -> None:
    """No row of it is opened: how long that takes depends on how many there are."""
    queries = [query("r-1", "0.1"), query("r-2", "5")]
    world.office("amir").submit_query(Purpose("q", "to know"), queries)
    world.agree("q")
    denied = world.office("amir").run("q").denied
    assert world.equipment.vault.opened == []
    assert denied is not None
    assert denied.release == "r-2"
    assert not denied.allowed
    standing = world.workspace("amir").standing("r-1")
    assert standing.status.value == "canceled"
    assert "flow-begun" not in kinds(world)
    assert world.office("amir").show("q").flow.runs == 0


@pytest.mark.spec("ESC-15")
def test_what_cannot_run_whatever_the_rows_are_opens_none(world: World) -> None:
    """Its noise is too wide to be drawn, or its charge was started by other means."""
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1", "1e-40")])
    world.office("amir").submit_query(Purpose("p", "to know"), [query("r-2")])
    world.agree("q")
    world.agree("p")
    with pytest.raises(InputError, match="noise of scale"):
        world.office("amir").run("q")
    assert "release-reserved" not in kinds(world)
    opened = world.equipment.vault.opened
    assert opened == []

    def given_up() -> None:
        if opened:
            raise NoLongerError

    with pytest.raises(NoLongerError):
        world.office("amir", given_up).run("p")
    world.workspace("amir").start("r-2")
    del opened[:]
    with pytest.raises(ConflictError, match="is started"):
        world.office("amir").run("p")
    assert opened == []


@pytest.mark.parametrize(
    ("unit", "mistake"),
    [
        ("{id: town}", InputError),
        ("{id: person, neighbors: substitute}", StaleError),  # It takes more noise.
    ],
)
def test_a_policy_that_means_something_else_stops_a_query(
    world: World, unit: str, mistake: type[ModicumError]
) -> None:
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1")])
    world.agree("q")
    text = POLICY.replace("{id: person}", unit)
    successor = compile_text(text.encode(), "policy.yaml")
    world.workspace("olga").governance.activate(successor, reason="another unit")
    with pytest.raises(mistake):
        world.office("amir").run("q")
    assert world.equipment.vault.opened == []
    assert "release-reserved" not in kinds(world)


def test_a_score_is_told_in_the_digits_of_its_range(world: World) -> None:
    code = b"def score(tables, arguments, reference):\n    return 0.1\n"
    world.queried()
    world.scored(program=replace(PROGRAM, code=code))
    world.office("amir").submit_signal(Purpose("s", "to know"), "t")
    world.agree("s")
    assert world.office("amir").receive("s").view.score == "0.1"


def test_a_task_without_its_sandbox_never_begins(world: World) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "to know"), "q", PROGRAM)
    world.agree("t")
    world.equipment.box.there = False
    with pytest.raises(UnavailableError, match="no bubblewrap"):
        world.office("amir").run("t")
    assert world.office("amir").show("t").flow.runs == 0


def test_a_task_has_its_sandbox_from_before_it_begins_to_its_end(world: World) -> None:
    """Otherwise others could keep it from what was paid for."""
    world.queried()
    world.office("amir").submit_task(Purpose("t", "to know"), "q", PROGRAM)
    world.agree("t")
    box, runs = world.equipment.box, list[int]()
    box.before_turn = lambda: runs.append(world.office("amir").show("t").flow.runs)
    world.office("amir").run("t")
    assert (runs, box.turns) == ([0], ["taken", "scored", "scored", "left"])
    with pytest.raises(ConflictError, match="results are withheld"):
        world.office("amir").run("t")
    assert len(box.turns) == 4  # Who may not run it keeps nobody waiting.


class NoLongerError(Exception):
    """Nobody wants it any more."""


@pytest.mark.parametrize("name", ["q", "t", "blocks"])
def test_what_nobody_wants_any_more_is_not_begun(world: World, name: str) -> None:
    """As a job that was given up while it waited for the sandbox."""
    if name == "q":
        queries = [query("r-q")]
        world.office("amir").submit_query(Purpose("q", "to know"), queries, exact=True)
    else:
        world.queried()
        blocks = ByBlocks(5, Fraction(1, 10)) if name == "blocks" else None
        heading = Purpose(name, "to know")
        world.office("amir").submit_task(heading, "q", PROGRAM, blocks=blocks)
    world.agree(name)
    before = kinds(world)
    waited = list[str]()

    def given_up() -> None:
        waited.append("asked")
        if len(waited) == (1 if name == "q" else 2):  # While it waits, and after.
            raise NoLongerError

    with pytest.raises(NoLongerError):
        world.office("amir", given_up).run(name)
    assert kinds(world) == before
    assert world.office("amir").show(name).flow.runs == 0
    assert world.office("amir").run(name).denied is None


@pytest.mark.spec("ESC-15")
@pytest.mark.parametrize("name", ["q", "blocks"])
def test_what_is_given_up_while_rows_are_opened_spends_nothing(
    world: World, name: str
) -> None:
    if name == "q":
        world.office("amir").submit_query(Purpose("q", "to know"), [query("r-q")])
    else:
        world.queried()
        blocks = ByBlocks(5, Fraction(1, 10))
        heading = Purpose(name, "to know")
        world.office("amir").submit_task(heading, "q", PROGRAM, blocks=blocks)
    world.agree(name)
    opened = world.equipment.vault.opened
    del opened[:]

    def given_up() -> None:
        if any(one.startswith("data/") for one in opened):
            raise NoLongerError

    with pytest.raises(NoLongerError):
        world.office("amir", given_up).run(name)
    assert kinds(world)[-1] == "release-reserved"
    assert world.office("amir").show(name).flow.runs == 0
    assert world.office("amir").run(name).denied is None


def test_a_task_has_its_sandbox_for_no_longer_than_it_may(world: World) -> None:
    """All of its programs together: on two kinds of answers, or on each block."""
    world.queried()
    ask, kept = world.office("amir").submit_task, set(world.equipment.vault.things)
    twenty = ByBlocks(20, Fraction(1, 10))
    for limits, blocks in ((Limits(43_201.0), None), (Limits(4321.0), twenty)):
        with pytest.raises(InputError, match="a task has 86400 seconds here"):
            ask(Purpose("t", "to know"), "q", PROGRAM, limits=limits, blocks=blocks)
    assert set(world.equipment.vault.things) == kept
    for limits, blocks in ((Limits(43_200.0), None), (Limits(4320.0), twenty)):
        name = "t" if blocks is None else "blocks"
        ask(Purpose(name, "?"), "q", PROGRAM, limits=limits, blocks=blocks)
        world.agree(name)
        office = world.office("amir")
        assert office._given is not None
        office._given = replace(office._given, task_seconds=86_399)  # It was more.
        with pytest.raises(InputError, match="a task has 86399 seconds here"):
            office.run(name)
        assert world.office("amir").show(name).flow.runs == 0
        assert world.office("amir").run(name).denied is None
    compares = replace(PROGRAM, compares=True)  # It has one score.
    ask(Purpose("c", "?"), "q", compares, limits=Limits(86_400.0))


def test_a_run_that_fails_says_nothing_of_why(world: World) -> None:
    world.queried()
    secret = b"def score(*_):\n    raise ValueError('olga earns 17')\n"
    program = replace(PROGRAM, code=secret)
    world.office("amir").submit_task(
        Purpose("t", "to know"), "q", program, limits=Limits(5.0)
    )
    world.agree("t")
    with pytest.raises(UnavailableError) as caught:
        world.office("amir").run("t")
    text = "".join(problem.render() for problem in caught.value.problems)
    assert "17" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert kinds(world)[-1] == "flow-failed"
    flow = world.office("amir").show("t").flow
    assert (flow.runs, dict(flow.running), flow.uses_left) == (1, {}, 2)


def test_a_query_that_fails_is_spent(world: World) -> None:
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1")])
    world.agree("q")
    world.equipment.vault.broken = True
    with pytest.raises(UnavailableError, match="ended without a result"):
        world.office("amir").run("q")
    world.equipment.vault.broken = False
    assert world.workspace("amir").standing("r-1").status.value == "started"
    with pytest.raises(ConflictError, match="used 1 times"):
        world.office("amir").run("q")


def test_contracts_end(world: World) -> None:
    heading = Purpose("q", "to know", lasts_seconds=60)
    world.office("amir").submit_query(heading, [query("r-1")])
    world.agree("q")
    world.clock.time = FixedClock(world.clock.time).after(world.clock.time, 60)
    with pytest.raises(ConflictError, match="it ended at"):
        world.office("amir").run("q")
    with pytest.raises(InputError, match="0 seconds"):
        world.office("amir").submit_query(replace(heading, lasts_seconds=0), [])


# --- agreeing ---------------------------------------------------------------------


def test_agreement_is_of_what_was_looked_at(world: World) -> None:
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1")])
    olga, shown = world.office("olga"), world.office("olga").show("q")
    digest = shown.flow.contract.digest
    with pytest.raises(StaleError, match="differs from what was reviewed"):
        olga.approve("q", reason="ok", content="0" * 64)
    head = world.workspace("olga").state().head
    world.workspace("amir").governance.annotate("hello")
    with pytest.raises(StaleError, match="moved on"):
        olga.approve("q", reason="ok", head=head)
    vote = olga.approve("q", reason="ok", content=digest)
    assert (vote.approves, vote.consents.by_data[0].missing) == (True, 1)
    assert olga.approve("q", reason="ok").repeated
    assert not olga.reject("q", reason="no").repeated
    assert not olga.approve("q", reason="ok").repeated
    for person in ("amir", "bea"):
        with pytest.raises(ConflictError, match="owns none of its data"):
            world.office(person).approve("q", reason="ok")
    with pytest.raises(InputError, match="reason"):
        olga.approve("q", reason=" ")


def test_owners_with_keys_sign(tmp_path: Path) -> None:
    world = World(tmp_path)
    own = key(1)
    owned = Ownership({"olga": (own.public.hex(),)}, 1)
    world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1")])
    for given in (None, key(2)):
        with pytest.raises(ApprovalError, match="cannot approve"):
            world.office("olga").approve("q", reason="ok", key=given)
    vote = world.office("olga").approve("q", reason="ok", key=own)
    assert vote.key == own.public.hex()
    assert world.office("amir").run("q").denied is None
    assert world.workspace("auditor").verify().signed == 1


# --- data -------------------------------------------------------------------------


def test_data_is_registered_by_those_who_own_it(world: World) -> None:
    with pytest.raises(ConflictError, match="does not own"):
        world.office("amir").register("people", ROWS, Declared(TABLES))
    other = TABLES.replace("  people:", "  visits:")
    with pytest.raises(InputError, match="has no owners"):
        world.office("amir").register("visits", ROWS, Declared(other))
    with pytest.raises(InputError, match="does not declare the table `people`"):
        world.office("olga").register("people", ROWS, Declared(other))
    with pytest.raises(ConflictError, match="other owners or limits"):
        world.office("olga").register(
            "people", ROWS, Declared(TABLES), replace(OWNED, quorum=1)
        )
    found = world.office("pavel").register("people", ROWS, Declared(TABLES))
    # The attempt before used up the number 2: what it sealed was shredded.
    assert found == Version("people", 3)
    assert [*world.office("amir").data()["people"].versions] == [1, 3]
    # pavel replaces nothing alone.
    amir = world.office("amir")
    flow = amir.submit_query(Purpose("q", "to know"), [query("r-1")])
    assert flow.contract.data["people"].number == 1
    with pytest.raises(ConflictError, match=r"no version of .* awaits"):
        world.office("olga").approve_data(Version("people", 1), reason="so it is")
    with pytest.raises(ConflictError, match="is not an owner"):
        amir.approve_data(found, reason="so it is")
    with pytest.raises(StaleError, match="differs from what was reviewed"):
        world.office("olga").approve_data(found, reason="so", content="0" * 64)
    vote = world.office("olga").reject_data(found, reason="not yet")
    assert (vote.consent.agreed, vote.consent.refused) == (("pavel",), ("olga",))
    vote = world.office("olga").approve_data(found, reason="so it is")
    assert (vote.consent.missing, vote.repeated) == (0, False)
    assert world.office("olga").approve_data(found, reason="so it is").repeated
    flow = amir.submit_query(Purpose("q-2", "to know"), [query("r-2")])
    assert flow.contract.data["people"].number == 3
    assert world.workspace("auditor").verify().approvals == 2


@pytest.mark.spec("ESC-15")
def test_data_is_looked_at_before_it_is_registered(world: World) -> None:
    before = dict(world.equipment.vault.things), kinds(world)
    rows = b"town,income\nnorth,low\n"
    with pytest.raises(InputError, match="has no column `person`") as caught:
        world.office("olga").register("people", rows, Declared(TABLES))
    assert caught.value.code.value == "MOD817"
    assert (world.equipment.vault.things, kinds(world)) == before


@pytest.mark.spec("ESC-15")
def test_data_that_does_not_fit_any_more_spends_nothing(world: World) -> None:
    """It was changed by who can write to the vault, or registered by an older one."""
    world.office("amir").submit_query(Purpose("q", "to know"), [query("r-1")])
    world.agree("q")
    rows = world.equipment.rows

    def other(sealed: Sealed, media: str) -> Any:
        world.equipment.vault.open(sealed)
        return world.equipment.rows_in(b"person,place\n1,north\n", media, "people")

    world.equipment.rows = other  # type: ignore[method-assign]
    with pytest.raises(InputError, match="has no column `town`") as caught:
        world.office("amir").run("q")
    assert caught.value.problems[0].notes[-1].startswith("nothing was spent")
    assert "north" not in str(caught.value)
    assert kinds(world)[-1] == "release-reserved"
    assert world.office("amir").show("q").flow.runs == 0
    world.equipment.rows = rows  # type: ignore[method-assign]
    assert world.office("amir").run("q").denied is None


def test_a_version_that_a_crash_left_behind_is_passed_over(world: World) -> None:
    world.equipment.vault.seal("data/people/2", b"half of it")
    found = world.office("pavel").register("people", ROWS, Declared(TABLES))
    assert found == Version("people", 3)


def test_shredding_takes_along_what_was_computed(world: World) -> None:
    world.queried()
    world.scored()
    amir = world.office("amir")
    amir.submit_signal(Purpose("s", "to know"), "t")
    world.agree("s")
    before = set(world.equipment.vault.things)
    version = Version("people", 1)
    with pytest.raises(ConflictError, match="does not own"):
        amir.shred(version, reason="no")
    assert set(world.equipment.vault.things) == before
    world.office("pavel").shred(version, reason="the law")
    left = set(world.equipment.vault.things)
    assert all(one.startswith("code/") for one in left)
    assert {"data/people/1"} <= world.equipment.vault.gone
    world.office("olga").shred(version, reason="once more")
    with pytest.raises(ConflictError, match="does not own"):
        amir.shred(version, reason="no")
    with pytest.raises(ConflictError, match="was shredded"):
        amir.receive("s")
    with pytest.raises(InputError, match="no version 9"):
        world.office("olga").shred(Version("people", 9), reason="no")


def test_an_escrow_without_a_vault_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    ws = world.workspace("olga")
    ws.equipment = None
    with pytest.raises(UsageError, match="no vault"):
        ws.escrow.register("people", ROWS, Declared(TABLES), OWNED)
    assert ws.escrow.data() == {}
    assert ws.escrow.contracts() == ()


def test_code_that_was_exchanged_does_not_run(world: World) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "to know"), "q", PROGRAM)
    world.agree("t")
    vault: DictVault = world.equipment.vault
    (place,) = [one for one in vault.things if one.startswith("code/")]
    vault.things[place] = b"def score(*_): return 1"
    with pytest.raises(ModicumError, match="the approved code"):
        world.office("amir").run("t")
    assert world.equipment.box.given == []


def test_limits_are_those_of_the_data_set(tmp_path: Path) -> None:
    world = World(tmp_path)
    owned = replace(OWNED, contracts_max=1, bits_max=0)
    world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    world.queried()
    world.scored()
    with pytest.raises(ConflictError, match="may receive 0 bits"):
        world.office("amir").submit_raw_signal(
            Purpose("raw", "to know"), "t", width=Fraction(1, 20)
        )
    world.office("amir").submit_signal(Purpose("s", "to know"), "t")
    with pytest.raises(ConflictError, match="1 open contracts"):
        world.office("amir").submit_signal(Purpose("s-2", "to know"), "t")
    world.office("amir").withdraw("s", reason="no need")
    world.office("amir").submit_signal(Purpose("s-2", "to know"), "t")

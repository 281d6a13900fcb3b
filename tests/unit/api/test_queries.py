"""Running queries with engines and samplers that note what is done to them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pytest
from samples import asked

from modicum.api.local import Workspace
from modicum.api.local.decision import Decision
from modicum.api.local.queries.actions import Queries, Ran
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    InvariantError,
    Problem,
    StaleError,
    UnavailableError,
)
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile
from modicum.query.results import Answers
from modicum.query.statistics import Exact, ExactPlan, Secrets
from modicum.query.tables import Table

CANARY = "canary-5309"


class StoppedError(UnavailableError):
    """A failure that a test makes."""

    def __init__(self) -> None:
        super().__init__(Problem(Code.ENGINE_FAILED, "stopped"))


@dataclass
class World:
    """An engine, a sampler, secrets and a ledger; all that happens is noted."""

    ledger: Workspace
    numbers: Callable[[ExactPlan], Mapping[str, Exact]]
    told: list[tuple[Any, ...]] = field(default_factory=list)
    fail_at: str = ""
    error: Exception = field(default_factory=StoppedError)
    noise: int = 0
    name: str = "fake"
    lots: int = 0

    def note(self, what: str, *more: Any) -> None:
        self.told.append((what, *more))
        if self.fail_at == what:
            raise self.error

    # the engine

    def check(self, plan: ExactPlan) -> None:
        self.note("check", plan)

    def fits(self, table: Table) -> None:
        self.note("fits", table)

    def run(self, plan: ExactPlan, secrets: Secrets) -> Mapping[str, Exact]:
        self.note("run", plan, secrets)
        return self.numbers(plan)

    def run_day(self, plan: ExactPlan, secrets: Secrets, used: object) -> NoReturn:
        raise NotImplementedError

    # secrets

    def draw(self) -> Secrets:
        self.note("draw")
        self.lots += 1
        return Secrets(f"{self.lots:02x}", f"{self.lots:02x}")

    @property
    def steps(self) -> list[str]:
        return [one[0] for one in self.told]

    def of(self, step: str) -> list[tuple[Any, ...]]:
        return [one[1:] for one in self.told if one[0] == step]


@dataclass
class Sampler:
    """A sampler that adds the same to every number."""

    world: World

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        self.world.note("check noise", noise, scale, sensitivity)

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        self.world.note("noise", noise, scale, list(values))
        return [value + self.world.noise for value in values]


@dataclass
class Ledger:
    """A ledger that notes what is asked of it, and where a release stands then."""

    world: World

    def submit(self, release: Any) -> Decision:
        self.world.note("submit")
        return self.world.ledger.submit(release)

    def check(self, release: Any) -> Decision:
        self.world.note("price")
        return self.world.ledger.check(release)

    def policy(self) -> CompiledPolicy:
        return self.world.ledger.policy()

    def cancel(self, release: str, *, reason: str) -> Any:
        self.world.note("cancel", reason)
        return self.world.ledger.cancel(release, reason=reason)

    def start(self, release: str) -> Any:
        found = self.world.ledger.start(release)
        self.world.note("start")
        return found

    def publish(self, release: str) -> Any:
        self.world.note("publish")
        return self.world.ledger.publish(release)


def nothing(plan: ExactPlan) -> Mapping[str, Exact]:
    return {one.name: {} for one in plan.all_statistics}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(asked.workspace(tmp_path), nothing)


def run(world: World, query: QueryFile, **more: Any) -> Ran:
    queries = Queries(Ledger(world))
    return queries.run_on(query, world, Sampler(world), world, **more)


def with_delta(*sql: str, **more: Any) -> QueryFile:
    """Return a query that is read under a policy whose rules know δ."""
    return asked.query(*sql, policy=asked.compiled(asked.WITH_DELTA), **more)


def status(world: World, release: str = "views") -> str:
    found = world.ledger.state().releases
    return found[release].status.value if release in found else "unknown"


# --- the order of what happens --------------------------------------------------------


@pytest.mark.spec("QRY-11")
def test_all_checks_come_first_and_posting_comes_last(world: World) -> None:
    seen: list[str] = []

    def on_start(decision: Decision) -> None:
        world.note("begun")
        seen.append(status(world))

    def complete(answers: Answers) -> None:
        world.note("complete")
        seen.append(status(world))
        assert len(answers.rows) == 62

    ran = run(world, asked.query(), on_start=on_start, complete=complete)
    assert world.steps == [
        "check", "check noise", "price", "submit", "start", "begun", "draw", "run",
        "noise", "complete", "publish",
    ]  # fmt: skip
    assert seen == ["started", "started"]
    assert status(world) == "published"
    assert ran.answers is not None
    assert ran.decision.allowed


def test_a_plan_reads_nothing_and_writes_nothing(world: World) -> None:
    decision = Queries(Ledger(world)).plan(asked.query())
    assert decision.allowed
    assert world.steps == ["price"]
    assert status(world) == "unknown"


@pytest.mark.spec("QRY-11")
@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("check", "unknown"),
        ("check noise", "unknown"),
        ("price", "unknown"),
        ("submit", "unknown"),
        ("start", "started"),
        ("begun", "started"),
        ("draw", "started"),
        ("run", "started"),
        ("noise", "started"),
        ("complete", "started"),
        ("publish", "started"),
    ],
)
def test_what_fails_after_the_start_is_spent(
    world: World, step: str, left: str
) -> None:
    world.fail_at = step
    hooks = {
        "on_start": lambda _: world.note("begun"),
        "complete": lambda _: world.note("complete"),
    }
    with pytest.raises(StoppedError):
        run(world, asked.query(), **hooks)
    assert world.steps[-1] == step
    assert status(world) == left
    world.fail_at, world.told = "", []
    if left == "unknown":
        assert run(world, asked.query()).answers is not None
        return
    with pytest.raises(ConflictError):
        run(world, asked.query())
    assert "run" not in world.steps
    assert "draw" not in world.steps
    # What is left of the day's 0.05 is less than another 0.03.
    assert run(world, asked.query(release="again")).answers is None


def test_a_denied_query_reads_nothing(world: World) -> None:
    ran = run(world, asked.query(loss={"user-day": {"rho": Fraction("0.06")}}))
    assert not ran.decision.allowed
    assert ran.answers is None
    assert "start" not in world.steps
    assert "run" not in world.steps


def test_a_query_is_answered_once(world: World) -> None:
    run(world, asked.query())
    world.told = []
    with pytest.raises(ConflictError):
        run(world, asked.query())
    with pytest.raises(ConflictError):
        run(world, asked.query(bounds={"user-day": 9, "user-month": 70}))
    assert world.steps.count("price") == 2
    assert "start" not in world.steps
    assert "run" not in world.steps


def test_a_second_run_is_refused_in_words_about_queries(world: World) -> None:
    world.fail_at = "run"
    with pytest.raises(StoppedError):
        run(world, asked.query())
    world.fail_at = ""
    with pytest.raises(ConflictError, match="was already started") as caught:
        run(world, asked.query())
    assert caught.value.code is Code.RELEASE_STATE
    run(world, asked.query(release="other", loss={"user-day": {"rho": 0.01}}))
    with pytest.raises(ConflictError, match="was already answered") as caught:
        run(world, asked.query(release="other", loss={"user-day": {"rho": 0.01}}))
    assert caught.value.code is Code.RELEASE_STATE
    assert "new loss" in caught.value.problems[0].help


def test_what_was_reserved_before_is_run(world: World) -> None:
    query = asked.query()
    world.ledger.submit(query.described)
    assert run(world, query).answers is not None
    assert status(world) == "published"


def test_nothing_is_read_before_people_agreed(tmp_path: Path) -> None:
    policy = (
        asked.POLICY
        + "roles: {officer: [olga]}\n"
        + "approvals: [{when: 'true', need: 1, from: [officer]}]\n"
    )
    world = World(asked.workspace(tmp_path, policy), nothing)
    query = asked.query(policy=asked.compiled(policy))
    with pytest.raises(ApprovalError):
        run(world, query)
    assert "start" not in world.steps
    assert "run" not in world.steps
    assert status(world) == "unknown"
    governor = asked.workspace(tmp_path, policy, actor="olga").governance
    governor.approve(query.described, reason="agreed")
    assert run(world, query).answers is not None


# --- what engines and samplers get and give -------------------------------------------


@pytest.mark.spec("QRY-9")
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_sampler_gets_the_scale_that_is_described(
    tmp_path: Path, noise: str
) -> None:
    measure, size = ("rho", "sigma") if noise == "gaussian" else ("eps", "scale")
    world = World(asked.workspace(tmp_path, asked.WITH_DELTA), nothing)
    sql = (
        "SELECT page, COUNT(*) AS n, AVG(amount) AS mean, VAR_POP(amount) AS spread,"
        " MEDIAN(amount) AS half, COUNT(DISTINCT user_id) AS readers"
        " FROM views GROUP BY page"
    )
    query = with_delta(
        sql, noise=noise, loss={"user-month": {measure: Fraction("0.2")}}, bins=4
    )
    run(world, query)
    mechanisms: list[dict[str, Any]] = query.compiled.mechanisms()
    described = {
        one["name"]: (one[size], one["sensitivity"]["user-month"]) for one in mechanisms
    }
    drawn = [(kind, scale) for kind, scale, _ in world.of("noise")]
    names = [line.statistic.name for line in query.compiled.lines]
    assert drawn == [(noise, described[name][0]) for name in names]
    checked = world.of("check noise")
    norm = "l2" if noise == "gaussian" else "l1"
    assert checked == [
        (noise, described[name][0], described[name][1][norm]) for name in names
    ]
    assert len(names) == 6


def test_groups_without_rows_are_told_with_noise(world: World) -> None:
    world.numbers = lambda _: {"views": {("2026-10-02", "main"): 7}}
    world.noise = -3
    ran = run(world, asked.query())
    assert ran.answers is not None
    told = {row.keys: row.estimates[0].value for row in ran.answers.rows}
    assert len(told) == 62
    assert told.pop(("2026-10-02", "main")) == 4
    assert set(told.values()) == {-3}


def test_groups_that_nobody_asked_for_are_not_told(world: World) -> None:
    world.numbers = lambda _: {"views": {("2026-10-02", CANARY): 7, (CANARY,): 8}}
    ran = run(world, asked.query())
    assert ran.answers is not None
    assert CANARY not in json.dumps(ran.answers.to_dict())
    assert len(world.of("noise")[0][2]) == 62


@pytest.mark.parametrize("sampled", [False, True])
def test_a_statistic_that_is_missing_is_no_zero(
    tmp_path: Path, *, sampled: bool
) -> None:
    world = World(asked.workspace(tmp_path), lambda _: {})
    heading = {"sampling": {"unit": "user", "rate": Fraction("0.5")}} if sampled else {}
    with pytest.raises(InvariantError):
        run(world, asked.query(heading=heading))
    assert "noise" not in world.steps
    assert status(world) == "started"


@pytest.mark.spec("QRY-14")
@pytest.mark.parametrize("step", ["run", "noise", "draw"])
def test_what_nobody_foresaw_is_not_quoted(world: World, step: str) -> None:
    world.fail_at, world.error = step, RuntimeError(f"row {CANARY}")
    with pytest.raises(InvariantError) as caught:
        run(world, asked.query())
    error: BaseException | None = caught.value
    assert "spent" in caught.value.render()
    assert CANARY not in caught.value.render()
    while error is not None:
        assert CANARY not in "".join(traceback.format_exception_only(error))
        error = error.__cause__ or error.__context__


def test_numbers_of_the_wrong_form_are_not_quoted(world: World) -> None:
    world.numbers = lambda _: {"views": {("2026-10-02", "main"): CANARY}}  # type: ignore[dict-item]
    with pytest.raises(InvariantError) as caught:
        run(world, asked.query())
    assert CANARY not in caught.value.render()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("function", "more"), [("VAR_POP", 0), ("VARIANCE", 1)])
def test_who_is_everybody_decides_what_is_divided_by(
    world: World, function: str, more: int
) -> None:
    """As many amounts of 3 as of 5: in steps of 0.5, each 2 away from 4."""
    rows = 4 * 10**9
    world.numbers = lambda _: {
        "v.rows": {(): rows},
        "v.total": {(): 0},
        "v.squares": {(): 4 * rows},
    }
    sql, loss = f"SELECT {function}(amount) AS v FROM views", Fraction("0.01")
    ran = run(world, asked.query(sql, loss={"user-day": {"rho": loss}}))
    assert ran.answers is not None
    (row,) = ran.answers.rows
    found = row.estimates[0].value
    assert found is not None
    assert round((found - 1) * rows) == more


# --- samples --------------------------------------------------------------------------


@pytest.mark.spec("QRY-12")
def test_each_mechanism_has_a_sample_of_its_own(tmp_path: Path) -> None:
    world = World(asked.workspace(tmp_path, asked.WITH_DELTA), nothing)
    query = with_delta(
        "SELECT page, COUNT(*) AS n, AVG(amount) AS mean FROM views GROUP BY page",
        heading={"sampling": {"unit": "user", "rate": Fraction("0.5")}},
    )
    run(world, query)
    runs = world.of("run")
    assert [[one.name for one in plan.statistics] for plan, _ in runs] == [
        ["n"], ["mean.rows"], ["mean.total"],
    ]  # fmt: skip
    assert len({secrets.sample_seed for _, secrets in runs}) == 3
    assert all(plan.sample.threshold == 2**59 for plan, _ in runs)


def test_keys_are_not_told_of_a_sample() -> None:
    with pytest.raises(InputError, match="on a sample"):
        asked.query(
            asked.BY_TOPIC,
            heading={"sampling": {"unit": "user", "rate": Fraction("0.5")}},
            discover={"delta": Fraction("1e-7")},
        )


def test_without_a_sample_all_is_computed_at_once(world: World) -> None:
    run(world, asked.query())
    ((plan, _),) = world.of("run")
    assert plan.sample is None
    assert [one.name for one in plan.all_statistics] == ["views"]


# --- keys that are told by noise ------------------------------------------------------


@pytest.mark.spec("QRY-10")
def test_keys_are_told_from_the_threshold_on(tmp_path: Path) -> None:
    world = World(asked.workspace(tmp_path, asked.WITH_DELTA), nothing)
    query = with_delta(asked.BY_TOPIC, discover={"delta": Fraction("1e-7")})
    selection = query.compiled.selection
    assert selection is not None
    least = selection.threshold
    ids: Exact = {
        ("b",): least,
        ("a",): least - 1,
        (None,): least + 1,
        ("c",): least + 9,
    }
    rows: Exact = {("a",): 10**6, ("b",): 5, ("c",): 6, (None,): 7, ("d",): 8}
    world.numbers = lambda _: {"keys": ids, "views": rows}
    ran = run(world, query)
    assert ran.answers is not None
    told = {row.keys: row.estimates[0].value for row in ran.answers.rows}
    assert told == {("b",): 5, ("c",): 6, (None,): 7}
    keys, views = world.of("noise")
    assert keys[:2] == ("laplace", selection.scale)
    assert views[:2] == ("gaussian", query.compiled.lines[0].scale)
    assert world.of("check noise")[-1] == ("laplace", selection.scale, 20)


def test_the_order_of_keys_is_not_that_of_the_engine(tmp_path: Path) -> None:
    told = []
    for number, order in enumerate((["b", "a", "c"], ["c", "b", "a"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        world = World(asked.workspace(folder, asked.WITH_DELTA), nothing)
        found = {(one,): 10**6 for one in order}
        world.numbers = lambda _, found=found: {"keys": found, "views": found}  # type: ignore[misc]
        ran = run(
            world, with_delta(asked.BY_TOPIC, discover={"delta": Fraction("1e-7")})
        )
        assert ran.answers is not None
        told.append([row.keys for row in ran.answers.rows])
    assert told[0] == told[1] == [("a",), ("b",), ("c",)]


def test_no_key_is_told_where_there_are_no_rows(tmp_path: Path) -> None:
    world = World(asked.workspace(tmp_path, asked.WITH_DELTA), nothing)
    ran = run(world, with_delta(asked.BY_TOPIC, discover={"delta": Fraction("1e-7")}))
    assert ran.answers is not None
    assert ran.answers.rows == ()
    assert status(world) == "published"


def test_a_key_may_be_called_as_keys_are_told(tmp_path: Path) -> None:
    world = World(asked.workspace(tmp_path, asked.WITH_DELTA), nothing)
    sql = asked.BY_TOPIC.replace("views FROM", "keys FROM")
    query = with_delta(sql, discover={"delta": Fraction("1e-7")})
    names = [one["name"] for one in query.compiled.mechanisms()]
    assert names == ["keys+", "keys"]
    assert run(world, query).answers is not None


# --- the policy that it was read under ------------------------------------------------

STRICT = asked.POLICY.replace("{rho: 0.75}", "{rho: 0.7}")


@pytest.mark.spec("QRY-16")
def test_a_query_read_under_another_policy_is_stale(world: World) -> None:
    query = asked.query(policy=asked.compiled(STRICT))
    for ask in (
        lambda: run(world, query),
        lambda: Queries(Ledger(world)).plan(query),
    ):
        with pytest.raises(StaleError, match="another policy"):
            ask()
    assert "submit" not in world.steps
    assert status(world) == "unknown"


@pytest.mark.spec("QRY-16")
def test_a_policy_that_changes_meanwhile_leaves_no_reservation(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit_later(ledger: Ledger, release: Any) -> Decision:
        world.ledger.governance.activate(asked.compiled(STRICT), reason="less")
        return ledger.world.ledger.submit(release)

    world.ledger = asked.opened(tmp_path)  # It decides by whichever is active.
    monkeypatch.setattr(Ledger, "submit", submit_later)
    with pytest.raises(StaleError, match="another policy"):
        run(world, asked.query())
    assert world.of("cancel") == [("the policy changed while the query was read",)]
    assert status(world) == "canceled"
    assert "run" not in world.steps


def test_a_reservation_of_somebody_else_stays_when_the_policy_changes(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.ledger.submit(asked.query().described).allowed

    def submit_later(ledger: Ledger, release: Any) -> Decision:
        world.ledger.governance.activate(asked.compiled(STRICT), reason="less")
        return ledger.world.ledger.submit(release)

    world.ledger = asked.opened(tmp_path)
    monkeypatch.setattr(Ledger, "submit", submit_later)
    with pytest.raises(StaleError, match="another policy"):
        run(world, asked.query())
    assert world.of("cancel") == []
    assert status(world) == "reserved"


def test_the_frames_of_an_error_are_not_those_that_hold_exact_numbers(
    world: World,
) -> None:
    """Whoever prints the names that are local to frames prints no exact number."""
    world.fail_at = "noise"
    world.error = UnavailableError(Problem(Code.ENGINE_FAILED, "no entropy"))
    with pytest.raises(UnavailableError) as caught:
        run(world, asked.query())
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "run_on" in names
    assert not {"noisy", "_with_noise", "_exact"} & set(names)
    assert caught.value.__context__ is None

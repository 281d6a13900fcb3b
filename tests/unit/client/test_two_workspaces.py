"""One ledger through both workspaces: what one says, the other says, word by word."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.postgres import Cluster
from samples.remote import BEFORE, answering
from samples.small import POLICY

import modicum as mo
from modicum.api.local import Workspace
from modicum.api.local.alternatives import trials
from modicum.client.workspace import RemoteWorkspace
from modicum.core.errors import ModicumError


def release(name: str, sigma: float = 50, **more: Any) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


@dataclass
class Both:
    """A ledger, and the two ways to it."""

    here: Workspace
    there: RemoteWorkspace

    def way(self, name: str) -> Any:
        return self.here if name == "here" else self.there


@pytest.fixture(params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    ledger: str | Path = tmp_path / "ledger.db"
    if request.param == "postgresql":
        cluster: Cluster = request.getfixturevalue("postgres")
        ledger = cluster.new_ledger()
    with (
        answering(ledger, policy=policy) as url,
        mo.connect(url, token=f"{BEFORE}dara") as there,
    ):
        yield Both(mo.open(ledger, actor="dara"), there)
    gc.collect()


def mistake(work: Callable[[], object]) -> tuple[Any, ...]:
    """Return what a mistake is: its class, and all that it says."""
    with pytest.raises(ModicumError) as caught:
        work()
    return (type(caught.value), caught.value.problems, caught.value.render())


@pytest.mark.spec("DEC-12")
def test_what_no_rule_limits_is_told_in_the_same_words(tmp_path: Path) -> None:
    narrow = POLICY[: POLICY.index("policies:")] + (
        "policies: [{name: d, when: '\"diagnosis\" in m.attributes', unit: user,"
        " budget: 1}]\n"
    )
    (tmp_path / "policy.yaml").write_text(narrow)
    limited = release("r-1")
    free = {**limited["mechanisms"][0], "name": "rows", "attributes": []}
    ledger = tmp_path / "ledger.db"
    with (
        answering(ledger, policy=tmp_path / "policy.yaml") as url,
        mo.connect(url, token=f"{BEFORE}dara") as remote,
    ):
        assert remote.submit(limited).allowed
        local = mo.open(ledger, actor="dara")
        for number, mechanisms in enumerate(([free], [*limited["mechanisms"], free])):
            request = {**release(f"asked-{number}"), "mechanisms": mechanisms}
            here, there = local.check(request), remote.check(request)
            assert there.to_dict(deep=True) == here.to_dict(deep=True)
            assert there.explain() == here.explain()
            assert (there.allowed, there.headline) == (False, here.headline)
            assert there.causes == here.causes == ("unmatched `rows`",)
            assert there.largest_fit().explain() == here.largest_fit().explain()
            assert len(there.options()) == len(here.options()) == number
        denied = remote.submit({**release("asked"), "mechanisms": [free]})
        assert (denied.status, denied.verdict.unmatched) == ("denied", ("rows",))
    gc.collect()


def test_decisions_are_told_in_the_same_words(both: Both) -> None:
    both.here.submit(release("spent", 5.5))
    for sigma in (500, 6, 5.5, 0.5, 0.01):
        request = release(f"r-{sigma}", sigma)
        here, there = both.here.check(request), both.there.check(request)
        assert there.to_dict() == here.to_dict()
        assert there.to_dict(deep=True) == here.to_dict(deep=True)
        for deep in (False, True):
            assert there.explain(deep=deep) == here.explain(deep=deep)
        assert (str(there), repr(there)) == (str(here), repr(here))
        assert there._repr_html_() == here._repr_html_()
        for name in (
            "allowed",
            "blocking",
            "over_limit",
            "headline",
            "status",
            "retry",
            "expires_at",
            "approvals",
            "notices",
            "policy_digest",
            "head",
            "seq",
        ):
            assert getattr(there, name) == getattr(here, name), name
        assert isinstance(there, mo.Decision)
        assert [
            (one.rule, one.allowed, one.together) for one in there.losses.values()
        ] == [
            (one["rule"], one["allowed"], _amount(one["together"]))
            for one in here.to_dict()["losses"]  # type: ignore[attr-defined]
        ]


def _amount(result: Any) -> float:
    return float("inf") if result == "inf" else result


def test_what_fits_is_the_same(both: Both) -> None:
    both.here.submit(release("spent", 5.5))
    request = release("denied", 5.5)
    here, there = both.here.check(request), both.there.check(request)
    assert not here.allowed
    for vary in ("noise", "where"):
        one, other = here.largest_fit(vary), there.largest_fit(vary)
        assert other.to_dict() == one.to_dict()
        assert other.release == one.release
    assert [one.view for one in there.options()] == [one.view for one in here.options()]
    assert mistake(lambda: there.largest_fit("color")) == mistake(
        lambda: here.largest_fit("color")
    )
    assert not there.options().ended_early
    with pytest.MonkeyPatch.context() as patched:  # Both are in this process.
        patched.setattr(trials, "WORK_MAX", 3)
        one, other = here.largest_fit(), there.largest_fit()
        assert other.to_dict() == one.to_dict()
        assert other.ended_early
        assert there.options().ended_early
        assert there.explain() == here.explain()
    fitting = there.largest_fit()
    assert fitting.release is not None
    assert both.there.submit(fitting.release).allowed


@pytest.mark.parametrize("way", ["here", "there"])
def test_a_release_lives(both: Both, way: str) -> None:
    ws = both.way(way)
    first = ws.submit(release("life"), reserve_seconds=60)
    assert (first.status, first.allowed, first.retry) == ("reserved", True, False)
    assert first.expires_at
    again = ws.submit(release("life"))
    assert (again.status, again.retry, again.expires_at) == (
        "reserved",
        True,
        first.expires_at,
    )
    assert ws.start("life") == both.here.standing("life") == both.there.standing("life")
    assert ws.publish("life") == both.here.standing("life")
    assert ws.submit(release("out"), publish=True).status == "published"
    ws.submit(release("given-up"))
    assert ws.cancel("given-up", reason="no need").status.value == "canceled"
    assert both.there.standing("given-up") == both.here.standing("given-up")
    past = ws.backfill(release("past", 0.5))
    assert (past.status, past.allowed) == ("recorded", True)
    assert past.over_limit
    assert past.to_dict()["over_limit"] == list(past.over_limit)
    denied = ws.submit(release("too-much", 0.5))
    assert (denied.status, denied.allowed) == ("denied", False)
    assert (
        "would be allowed with" in denied.explain()
        or "no single-parameter change would fit" in denied.explain()
    )


def test_mistakes_are_the_same(both: Both, tmp_path: Path) -> None:
    both.here.submit(release("same"))
    both.here.submit(release("void"))
    both.here.cancel("void", reason="x")
    wrong: list[Any] = [
        release("same", 60),
        release("void"),
        {**release("r"), "colour": 1},
        release("r", -1),
        release("r", 0),
        {"release": "r", "mechanisms": []},
        {**release("r"), "labels": {"ml": "white-box"}},
        {},
    ]
    file = tmp_path / "wrong.yaml"
    file.write_text(
        "release: from-file\ndataset: visits\nmechanisms:\n  - name: counts\n"
        "    mechanism: gaussian\n    attributes: [diagnosis, hight]\n"
        "    sensitivity: {user: {l2: 1}}\n    sigmo: 3\n"
    )
    wrong.append(mo.load_release(file))
    other = tmp_path / "other.yaml"
    other.write_text(
        "# The same id, other contents.\nrelease: same\ndataset: visits\nmechanisms:\n"
        "  - {name: counts, mechanism: gaussian, attributes: [diagnosis],\n"
        "     sensitivity: {user: {l2: 1}}, sigma: 60.0}\n"
    )
    wrong.append(mo.load_release(other))
    for request in wrong:
        for verb in ("check", "submit"):
            here = mistake(lambda v=verb, a=request: getattr(both.here, v)(a))  # type: ignore[misc]
            there = mistake(lambda v=verb, a=request: getattr(both.there, v)(a))  # type: ignore[misc]
            assert there == here
    for verb in ("start", "publish", "standing"):
        for name in ("unknown", "void", "same", "", "x" * 201, "..", "a/b:start"):
            if (verb, name) in {("start", "same"), ("standing", "same")}:
                continue
            if (verb, name) == ("standing", "void"):
                continue
            here = mistake(lambda v=verb, n=name: getattr(both.here, v)(n))  # type: ignore[misc]
            there = mistake(lambda v=verb, n=name: getattr(both.there, v)(n))  # type: ignore[misc]
            assert there == here, (verb, name)
    assert mistake(lambda: both.there.cancel("same", reason="")) == mistake(
        lambda: both.here.cancel("same", reason="")
    )


def test_numbers_arrive_exactly(both: Both) -> None:
    digits = Decimal("50.1234567890123456789012345678901234567")
    request = release("exact")
    request["mechanisms"][0]["sigma"] = digits
    assert both.there.submit(request).allowed
    assert both.here.submit(request).retry  # The same contents, to the last digit.
    assert both.there.submit(mo.Release(**_draft("draft"))).allowed
    assert both.here.submit(mo.Release(**_draft("draft"))).retry
    for number in (float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")):
        for ws in (both.here, both.there):
            with pytest.raises(mo.InputError):
                ws.submit(release("none", number))  # type: ignore[arg-type]
    third = release("third")
    third["mechanisms"][0]["sigma"] = Fraction(100, 3)
    with pytest.raises(mo.InputError, match="cannot be sent"):
        both.there.submit(third)
    with pytest.raises(mo.InputError):
        both.here.standing("third")


def _draft(name: str) -> dict[str, Any]:
    one = mo.gaussian(
        attributes=["diagnosis"], sensitivity={"user": mo.l2(1)}, sigma=40
    )
    return {"release": name, "dataset": "visits", "mechanisms": [one]}


def test_odd_ids_are_the_same_release(both: Both, tmp_path: Path) -> None:
    for name in ("a", "a/b", "a/receipt", "x:start", "ä ö", "a%2Fb", "q?r#s", 'quo"te'):
        try:
            expected = both.here.submit(release(name)).status
        except mo.InputError:
            here = mistake(lambda n=name: both.here.check(release(n)))  # type: ignore[misc]
            assert here == mistake(lambda n=name: both.there.check(release(n)))  # type: ignore[misc]
            continue
        assert both.there.submit(release(name)).retry
        assert both.there.standing(name).status.value == expected
        assert both.there.start(name) == both.here.standing(name)


def test_what_holds_is_told(both: Both) -> None:
    both.here.submit(release("spent", 5.5))
    here, there = both.here.standings(), both.there.standings()
    assert [(one.rule, one.allowed) for one in there] == [
        (one.rule.id, one.allowed) for one in here
    ]
    for loss, standing_there in zip(here, there, strict=True):
        assert both.here.loss_of(loss.rule) == loss
        assert both.there.loss_of(loss.rule) == standing_there
    rule = here[0].rule.id
    result, known = both.there.spenders(rule), both.here.spenders(rule)
    assert [one.release for one in result.spenders] == ["spent"]
    assert result.spent == known.view(5).spent
    assert both.there.head().head == both.here.state().head
    one, other = both.here.policy(), both.there.policy()
    assert one.policy.digest == other.policy.digest
    standing = both.here.standing("spent")
    assert both.there.release_of(standing) == both.here.release_of(standing)
    assert both.there.policy_text_at(1) == both.here.policy_text_at(1) != ""
    assert both.there.policy_text_at(0) == both.here.policy_text_at(0) == ""
    assert mistake(lambda: both.there.spenders("none")) == mistake(
        lambda: both.here.spenders("none")
    )


@pytest.mark.parametrize("way", ["here", "there"])
def test_a_block_starts_and_posts(both: Both, way: str) -> None:
    ws = both.way(way)
    ws.submit(release("used"))
    with ws.use("used") as use:
        assert both.here.standing("used").status.value == "started"
        assert use.mechanisms == ("counts",)
        assert use.unit("user").id == "user_id"
        use.claim("counts")
        with pytest.raises(mo.ConflictError):
            use.claim("counts")
    assert both.here.standing("used").status.value == "published"
    ws.submit(release("broken"))
    with pytest.raises(RuntimeError), ws.use("broken"):
        raise RuntimeError
    assert both.here.standing("broken").status.value == "started"
    with pytest.raises(mo.ConflictError):
        ws.use("broken")


def test_who_may_not_hears_so(both: Both) -> None:
    connection = both.there._connection.url
    with (
        mo.connect(connection, token=f"{BEFORE}lee") as lee,
        pytest.raises(mo.AccessError) as caught,
    ):
        lee.submit(release("visits"))
    assert caught.value.code.value == "MOD832"
    with (
        mo.connect(connection, token="of-nobody") as nobody,
        pytest.raises(mo.AccessError) as caught,
    ):
        nobody.check(release("visits"))
    assert caught.value.code.value == "MOD831"

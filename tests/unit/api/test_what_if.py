"""A history under another policy: decisions, conflicts, what would fit, assumptions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, POLICY, compiled, counts, workspace

from modicum.accounting import (
    INFINITE,
    ApproxBudget,
    Budget,
    GdpBudget,
    Loss,
    PureBudget,
    Total,
    Unlimited,
    ZcdpBudget,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.grid import COORDINATES, DELTA, RHO
from modicum.accounting.mechanisms import declared_pure, gaussian
from modicum.api.local import Workspace
from modicum.api.local.explanation.budget_fit import (
    largest_rho,
    readable,
    smallest_budget,
)
from modicum.api.local.explanation.denial_text import amount_text, room_text
from modicum.api.local.policies.replay import DENIED, History, history_of
from modicum.api.local.policies.rule_standing import rule_standing
from modicum.api.local.policies.what_if import Change, WhatIf, what_if
from modicum.core.errors import InputError
from modicum.ledger import ChainBreakError

LATER = "2026-05-03T12:00:00.000000Z"


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


def past_of(ws: Workspace, now: str = NOON) -> History:
    return history_of(ws.records(), now)


def under(ws: Workspace, *edits: tuple[str, str], now: str = NOON) -> WhatIf:
    """Return the history of a ledger under an edited policy."""
    text = POLICY
    for was, is_now in edits:
        assert was in text, was
        text = text.replace(was, is_now)
    return what_if(past_of(ws, now), compiled(text))


def decisions(found: WhatIf) -> dict[str, tuple[bool, Change]]:
    return {one.attempt.release.id: (one.allowed, one.change) for one in found.replayed}


@pytest.mark.spec("DEC-12")
def test_what_no_rule_of_the_other_policy_limits_is_denied_under_it(
    ws: Workspace,
) -> None:
    ws.submit(counts("a", attributes=("age",)))
    ws.submit(counts("b"))
    ws.backfill(counts("c", attributes=()))
    cap = POLICY[POLICY.index("per_release:") :]
    narrow = (
        POLICY[: POLICY.index("policies:")]
        + cap
        + (
            "policies:\n"
            "  - {name: d, when: '\"diagnosis\" in m.attributes', unit: user,"
            " budget: 1}\n"
        )
    )
    found = what_if(past_of(ws), compiled(narrow))
    assert decisions(found) == {
        "a": (False, Change.DENIED_NOW),
        "b": (True, Change.SAME),
        "c": (True, Change.SAME),
    }
    assert [one.unmatched for one in found.replayed] == [("counts",), (), ()]
    assert [one.blocking for one in found.replayed] == [(), (), ()]
    allowing = what_if(past_of(ws), compiled(narrow + "unmatched: allow\n"))
    assert {change for _, change in decisions(allowing).values()} == {Change.SAME}


TIGHT = ("high: 1.0}", "high: 0.5}")


def test_the_same_policy_decides_the_same(ws: Workspace) -> None:
    ws.submit(counts("a", rho="0.012"), publish=True)
    ws.submit(counts("b", rho="0.012"))
    ws.backfill(counts("c", rho="0.012"))
    found = under(ws)
    assert {change for _, change in decisions(found).values()} == {Change.SAME}
    assert [one.attempt.outcome for one in found.replayed] == [
        "published",
        DENIED,
        "recorded",
    ]
    denied = found.replayed[1]
    assert denied.blocking == denied.attempt.blocking != ()


def test_denied_now_is_not_charged(ws: Workspace) -> None:
    """What would have been denied leaves room for what came after."""
    ws.submit(counts("large", rho="0.012"), publish=True)
    ws.submit(counts("small", rho="0.002"), publish=True)
    found = under(ws, TIGHT)
    assert decisions(found) == {
        "large": (False, Change.DENIED_NOW),
        "small": (True, Change.SAME),
    }
    assert found.replayed[0].blocking == ("attr:diagnosis @standard",)
    # What did happen is another question.
    assert [one.rule.id for one in found.conflicts] == ["attr:diagnosis @standard"]


def test_allowed_now_is_charged(ws: Workspace) -> None:
    ws.submit(counts("first", rho="0.012"), publish=True)
    ws.submit(counts("second", rho="0.012"))
    ws.submit(counts("third", rho="0.004"), publish=True)
    found = under(ws, ("high: 1.0}", "high: 1.2}"))
    assert decisions(found)["second"] == (True, Change.ALLOWED_NOW)
    assert decisions(found)["third"] == (False, Change.DENIED_NOW)


def test_what_was_recorded_counts_and_is_never_denied(ws: Workspace) -> None:
    ws.backfill(counts("old", rho="0.5"))
    ws.submit(counts("new", rho="0.0001"))
    found = under(ws)
    past = found.replayed[0]
    assert past.allowed
    assert "attr:diagnosis @standard" in past.blocking
    assert decisions(found)["new"] == (False, Change.SAME)


def test_what_was_voided_counts_until_then(ws: Workspace) -> None:
    ws.submit(counts("given-up", rho="0.012"))
    ws.submit(counts("early", rho="0.012"))
    ws.cancel("given-up", reason="not needed")
    ws.submit(counts("late", rho="0.012"), publish=True)
    found = under(ws)
    assert decisions(found) == {
        "given-up": (True, Change.SAME),
        "early": (False, Change.SAME),
        "late": (True, Change.SAME),
    }
    assert found.replayed[0].attempt.outcome == "canceled"
    assert not found.conflicts


def test_a_reservation_that_ran_out_counts_no_more(ws: Workspace) -> None:
    ws.submit(counts("slow", rho="0.012"))
    assert [one.id for one in past_of(ws).counted] == ["slow"]
    later = past_of(ws, LATER)
    assert later.counted == ()
    assert later.attempts[0].outcome == "expired"
    assert not under(ws, TIGHT, now=LATER).conflicts
    assert under(ws, TIGHT).conflicts


def test_an_id_that_is_tried_again_is_charged_once(ws: Workspace) -> None:
    ws.submit(counts("first", rho="0.012"), publish=True)
    ws.submit(counts("again", rho="0.012"))
    ws.submit(counts("again", rho="0.002"), publish=True)
    ws.submit(counts("last", rho="0.002"), publish=True)
    wide = [("high: 1.0}", "high: 1.2}")]
    found = under(ws, *wide)
    changes = [(one.allowed, one.change) for one in found.replayed]
    assert changes == [
        (True, Change.SAME),
        (True, Change.ALLOWED_NOW),
        (True, Change.SAME),
        (True, Change.SAME),
    ]
    # With all four charged, the last one would not fit.
    assert not under(ws, *wide).conflicts


def test_guards_refuse(ws: Workspace) -> None:
    ws.submit(counts("a"), publish=True)
    text = POLICY + (
        "\nguards:\n"
        "  - {name: aged, unless: '\"age\" in m.attributes', message: read age}\n"
    )
    found = what_if(past_of(ws), compiled(text))
    assert found.replayed[0].guards == ("aged",)
    assert not found.replayed[0].allowed
    assert not found.replayed[0].blocking


def test_progress_is_told(ws: Workspace) -> None:
    for number in range(3):
        ws.submit(counts(f"r-{number}"))
    result: list[tuple[int, int]] = []
    what_if(past_of(ws), compiled(), lambda done, total: result.append((done, total)))
    assert result == [(1, 3), (2, 3), (3, 3)]


def test_the_closest_rules_come_first(ws: Workspace) -> None:
    ws.submit(counts("a", rho="0.01"), publish=True)
    closest = under(ws).closest
    assert closest[0].rule.id == "attr:diagnosis @standard"
    assert len({loss.rule.id for loss in closest}) == len(closest) <= 10


def test_a_conflict_names_its_contributors(ws: Workspace) -> None:
    ws.submit(counts("small", rho="0.002"), publish=True)
    ws.submit(counts("large", rho="0.006"), publish=True)
    ws.submit(counts("other", rho="0.002", attributes=("age",)), publish=True)
    (conflict,) = under(ws, TIGHT).conflicts
    assert [one.release for one in conflict.contributors] == ["large", "small"]
    shares = [one.share for one in conflict.contributors]
    assert sum(share for share in shares if share) == 1
    problem = conflict.problem
    assert problem.code.value == "MOD601"
    assert problem.mark is not None
    assert "{low:" in problem.mark.source
    assert "made by large" in problem.notes[0]
    assert "keep at least" in problem.help


def test_conflicts_are_found_also_where_rules_are_implied(ws: Workspace) -> None:
    """An exceeded rule implies nothing: what it implied is looked at, too."""
    ws.backfill(counts("old", rho="0.05"))
    text = POLICY.replace("{high: 1.2}", "{high: 1.0}").replace("1.25", "1.0")
    policy = compiled(text)
    numbers = {
        rule: policy.rules.number(rule)
        for rule in ("cat:health/strong @standard", "cat:health/member @standard")
    }
    pruned = {
        rule
        for rule, number in numbers.items()
        if number is not None and policy.pruned.witness[number] >= 0
    }
    assert pruned
    found = {one.rule.id for one in what_if(past_of(ws), policy).conflicts}
    assert pruned <= found


def test_what_old_releases_do_not_say(ws: Workspace) -> None:
    ws.submit(counts("a", ml="black-box"), publish=True)
    edits = (
        ("labels:", "labels:\n  who: {values: [staff, all], default: staff}"),
        ("[none, black-box], default: none", "[none, gray], default: none"),
        ('black-box: {when: "true"', 'gray: {when: "true"'),
        ("within: black-box", "within: gray"),
        ("    diagnosis: [high", "    weight: [high"),
        ("units: {user: {id: user_id}}", "units: {user: {id: u}, day: {id: d}}"),
        (
            'when: "true", unit: user, budget: 2.0',
            'when: "true", unit: day, budget: 2.0',
        ),
    )
    found = under(ws, *edits)
    result = {(one.kind, one.subject, one.taken) for one in found.assumptions}
    assert result == {
        ("label", "who", "not given: assumed staff"),
        ("label", "ml", "was black-box: assumed none"),
        ("attribute", "diagnosis", "no longer known: no rule uses it"),
        ("attribute", "weight", "assumed not read"),
        ("unit", "day", "no loss given: assumed infinite"),
    }
    infinite = found.conflicts[0]
    assert infinite.rule.id == "global @standard"
    assert infinite.contributors[0].units == INFINITE
    assert infinite.contributors[0].share is None
    assert infinite.fits is None
    assert "no budget of this measure fits" in infinite.problem.help


def test_open_text_that_is_a_label_now_is_not_said_to_be_missing(
    ws: Workspace,
) -> None:
    ws.submit(counts("a", purpose="ads"), publish=True)
    ws.submit(counts("b", purpose="else"), publish=True)
    found = under(
        ws, ("labels:", "labels:\n  purpose: {values: [ads, care], default: ads}")
    )
    assert [(one.subject, one.taken, one.releases) for one in found.assumptions] == [
        ("purpose", "was else: assumed ads", ("b",))
    ]


def test_another_relation_is_told(ws: Workspace) -> None:
    ws.submit(counts("a"), publish=True)
    found = under(ws, ("dp: {", "dp: {neighbors: any-change, "))
    assert [(one.kind, one.subject) for one in found.assumptions] == [
        ("relation", "user")
    ]


def test_a_broken_log_is_not_replayed(ws: Workspace) -> None:
    ws.submit(counts("a"))
    records = list(ws.records())
    with pytest.raises(ChainBreakError):
        history_of(records[1:], NOON)
    history = past_of(ws)
    assert (history.seq, history.head) == (len(records), records[-1].hash)


# --- what fits ------------------------------------------------------------------

NOISE = Total().plus(gaussian(rho=Fraction(1, 100)).loss())
DELTA_LOSS = Loss(
    tuple(5 * 10**10 if i != DELTA else 10**10 for i in range(COORDINATES))
)


@pytest.mark.parametrize(
    ("budget", "total"),
    [
        (ApproxBudget(Fraction(1, 10), Fraction(1, 10**7)), NOISE),
        (ApproxBudget(Fraction(5), Fraction(1, 10**7)), NOISE),
        (ZcdpBudget(Fraction(1, 1000)), NOISE),
        (GdpBudget(Fraction(1, 1000)), NOISE),
        (
            PureBudget(Fraction(1, 1000)),
            Total().plus(declared_pure(eps=Fraction(1, 3)).loss()),
        ),
        (ApproxBudget(Fraction(1, 10), Fraction(1, 10**10)), Total().plus(DELTA_LOSS)),
    ],
)
@pytest.mark.parametrize("name", ["combined-v1", "combined-v2", "zcdp-v1"])
def test_the_smallest_budget_fits_and_one_unit_less_does_not(
    budget: Budget, total: Total, name: str
) -> None:
    least = smallest_budget(budget, name, total)
    assert least is not None
    assert filter_for(least, name).admits(total)
    unit = Fraction(1, 10**12)
    less: Any = {
        "eps": lambda b: type(b)(
            b.eps - unit, *([b.delta] if hasattr(b, "delta") else [])
        ),
        "rho": lambda b: ZcdpBudget(b.rho - unit),
        "mu": lambda b: GdpBudget(b.mu - unit),
    }
    (change,) = (less[key] for key in less if hasattr(least, key))
    assert not filter_for(change(least), name).admits(total)
    rounded = readable(least, name, total)
    assert filter_for(rounded, name).admits(total)


def test_delta_is_raised_where_own_deltas_need_it() -> None:
    total = Total().plus(DELTA_LOSS)
    budget = ApproxBudget(Fraction(1), Fraction(1, 10**10))
    least = smallest_budget(budget, "combined-v1", total)
    assert isinstance(least, ApproxBudget)
    assert least.delta > budget.delta
    unit = ApproxBudget(least.eps, least.delta - Fraction(1, 10**18))
    assert not filter_for(unit, "combined-v1").admits(total)


def test_some_totals_fit_in_no_budget_of_a_measure() -> None:
    delta = Total().plus(DELTA_LOSS)
    assert smallest_budget(ZcdpBudget(Fraction(1)), "combined-v1", delta) is None
    assert smallest_budget(PureBudget(Fraction(1)), "combined-v1", NOISE) is None
    huge = ApproxBudget(Fraction(1), Fraction(1, 10**7))
    noisy = Total().plus(gaussian(rho=Fraction(30)).loss())
    assert smallest_budget(huge, "as-published", noisy) is None
    assert smallest_budget(huge, "as-published", delta) is None
    assert smallest_budget(Unlimited(), "combined-v1", NOISE) == Unlimited()


def test_each_renyi_limit_is_raised_as_far_as_it_must_be() -> None:
    budget = RenyiBudget(((Fraction(2), Fraction(1)), (Fraction(8), Fraction(1, 100))))
    least = smallest_budget(budget, "combined-v1", NOISE)
    assert least == RenyiBudget(
        ((Fraction(2), Fraction(1)), (Fraction(8), Fraction(8, 100)))
    )
    endless = Total().plus(Loss((INFINITE,) * (COORDINATES - 1) + (0,)))
    assert smallest_budget(budget, "combined-v1", endless) is None


def test_a_budget_is_made_readable_upwards() -> None:
    budget = ApproxBudget(Fraction("0.754613976287"), Fraction(1234567, 10**14))
    rounded = ApproxBudget(Fraction("0.7547"), Fraction(1235, 10**11))
    assert readable(budget, "combined-v1", Total()) == rounded
    zcdp = readable(ZcdpBudget(Fraction(123456)), "combined-v1", Total())
    assert zcdp == ZcdpBudget(Fraction(123500))


def test_a_budget_that_the_filter_is_not_proven_for_is_not_proposed() -> None:
    edge = ApproxBudget(Fraction("21.490794201277"), Fraction(1, 10**7))
    assert filter_for(edge, "as-published").admits(Total())
    with pytest.raises(InputError):
        filter_for(ApproxBudget(Fraction("21.5"), edge.delta), "as-published")
    assert readable(edge, "as-published", Total()) == edge


def test_what_is_left_is_rounded_down() -> None:
    assert room_text(26_075_755_768) == "0.02607"
    assert amount_text(26_075_755_768) == "0.02608"
    assert (room_text(0), room_text(INFINITE)) == ("0", "inf")


@pytest.mark.parametrize(
    "budget",
    [
        ApproxBudget(Fraction(1), Fraction(1, 10**7)),
        ZcdpBudget(Fraction(1, 20)),
        GdpBudget(Fraction(1, 2)),
        RenyiBudget(((Fraction(2), Fraction(1)), (Fraction(8), Fraction(1, 2)))),
    ],
)
def test_the_largest_rho_fits_and_one_unit_more_does_not(budget: Budget) -> None:
    own = filter_for(budget, "combined-v1")
    rho = largest_rho(own, NOISE)
    assert rho is not None
    assert rho > 0

    def fits(units: int) -> bool:
        loss = gaussian(rho=Fraction(units, 10**12)).loss()
        return own.admits(NOISE.plus(loss))

    assert fits(rho)
    assert not fits(rho + 1)


def test_no_gaussian_noise_fits_in_pure_eps() -> None:
    own = filter_for(PureBudget(Fraction(1)), "combined-v1")
    assert largest_rho(own, Total()) == 0
    assert largest_rho(filter_for(Unlimited(), "combined-v1"), Total()) is None


# --- where a rule stands ----------------------------------------------------------


def test_a_rule_stands_where_its_releases_left_it(ws: Workspace) -> None:
    ws.submit(counts("a", rho="0.004"), publish=True)
    ws.submit(counts("b", rho="0.002"), publish=True)
    policy = compiled()
    number = policy.rules.number("attr:diagnosis @standard")
    assert number is not None
    found = rule_standing(policy.rules[number], past_of(ws), policy)
    assert found.loss.before.units(RHO) == 6 * 10**9
    assert found.spent.limit == 10**12
    assert found.left == 10**12 - found.spent.together > 0
    assert [one.release for one in found.spenders] == ["a", "b"]
    assert found.rho_left is not None
    rest = Fraction(found.rho_left, 10**12)
    assert ws.check(counts("c", rho=str(float(rest - Fraction(1, 10**9))))).allowed
    assert not ws.check(counts("d", rho=str(float(rest + Fraction(1, 10**9))))).allowed

"""Redefined units, renamed attributes, late claims, swapped labels: asked, or priced.

Each is refused until somebody accepts it, and then charged as an oracle says that knows
no code of the product: it looks at all small tables, or at all people there may be. A
ledger in which earlier versions let it happen does not verify, and says what is
understated.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oracle.entailment import Row, Search
from samples.first_version import as_written_by, with_policy
from samples.redefined import POLICY, activate, of, release, run
from samples.small import NOON, compiled

from modicum.accounting import INFINITE
from modicum.accounting.grid import RHO
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.core.errors import Code, InputError, VerificationError
from modicum.ledger import Record
from modicum.release import Unit
from modicum.storage.sqlite_store import SqliteStore

#: What each release states for each unit: a rho of 0.1, in units of the ledger.
STATED = 10**11
ALONE = """
modicum: policy/v1
name: pageviews
dp: {accountant: zcdp}
units:
  user: {id: uid}
schema: {attributes: {page: low}}
policies:
  - {name: short, when: "true", unit: user, budget: {rho: 1}}
"""
BY_PAGE = POLICY.replace(
    'when: "true", unit: time', "when: '\"page\" in m.attributes', unit: time"
)
BY_SITE = BY_PAGE.replace("page: low", "site: low").replace('"page"', '"site"')
REGIONS = POLICY + "population: {partition_by: {region: {values: [EU, US]}}}\n"
FIXED = REGIONS.replace("[EU, US]", "[EU, US], immutable: [user, time]")
LABELED = (
    POLICY
    + """
labels: {audience: {values: [public, internal], default: public}}
extensions:
  - name: audience
    settings:
      open: {when: "true", budget: {scale: 2}}
      strict: {when: 'm.audience == "public"', budget: same, within: open}
"""
)
SWAPPED = LABELED.replace('== "public"', '== "internal"').replace(
    "default: public", "default: internal"
)


class Case(NamedTuple):
    """A policy that gives a name another meaning.

    Attributes:
        before: The policy that a release is recorded under.
        after: The one that follows.
        version: The last one of the events that let it happen unasked.
        told: What people are told, each with its code.
        accept: What they have to accept.
        named: What verification of an old ledger names.
        where: The part that the release reads.
    """

    before: str
    after: str
    version: int
    told: tuple[tuple[Code, str], ...]
    accept: tuple[str, ...]
    named: tuple[str, ...]
    where: tuple[str, ...] = ()


def redefinition(
    old: str, new: str, told: str, policy: str = POLICY, unit: str = "time"
) -> Case:
    message = f"the unit `{unit}` is redefined under the same name: {told}"
    return Case(
        policy,
        policy.replace(old, new, 1),
        4,
        ((Code.UNIT_REDEFINED, message),),
        (f"unit:{unit}",),
        (message, "these rules undercount: short"),
    )


REDEFINITIONS = {
    "day to month": redefinition("period: day", "period: month", "period day -> month"),
    "person to household": redefinition(
        "id: uid, time", "id: household, time", "id uid -> household"
    ),
    "user to user-day": redefinition(
        "{id: uid}",
        "{id: uid, time: {column: at, period: day}}",
        "period none -> day, column none -> at",
        ALONE,
        "user",
    ),
    "time column": redefinition("column: at", "column: seen", "column at -> seen"),
}
RENAME = Case(
    BY_PAGE,
    BY_SITE,
    4,
    (
        (
            Code.ATTRIBUTE_DROPPED,
            "the attribute `page` is removed, and one of `site` may be its new name",
        ),
    ),
    ("attribute:page",),
    ("the attribute `page` was removed", "these rules may undercount: short"),
)
LATE = Case(
    REGIONS,
    FIXED,
    5,
    (),
    (),
    (
        "the unit `time` is said to keep a value",
        "these rules undercount: short",
        "the unit `user` is said to keep a value",
        "these rules undercount: long",
    ),
    ("EU",),
)
SWAP = Case(
    LABELED,
    SWAPPED,
    5,
    (
        (Code.RELEASES_DEPARTED, "1 past release leaves the rule short @strict"),
        (Code.RELEASES_DEPARTED, "1 past release leaves the rule long @strict"),
    ),
    ("departed:short", "departed:long"),
    ("leaves the rule short @strict", "leaves the rule long @strict"),
)
CASES = {**REDEFINITIONS, "rename": RENAME, "late claim": LATE, "label swap": SWAP}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def begun(folder: Path, case: Case) -> None:
    folder.mkdir(exist_ok=True)
    written = release("r-1", compiled(case.before).policy.vocabulary.units)
    if case.where:
        written["mechanisms"][0]["where"] = {"region": [*case.where]}
    of(folder, case.before).submit(written, publish=True)


def spent(folder: Path) -> dict[str, int]:
    return {one.rule.id: one.before.units(RHO) for one in of(folder).standings()}


# --- asked --------------------------------------------------------------------------


@every_case
@pytest.mark.spec("POL-17")
@pytest.mark.spec("POL-18")
@pytest.mark.spec("POL-19")
def test_it_is_refused_until_it_is_accepted(tmp_path: Path, case: Case) -> None:
    begun(tmp_path, case)
    preview = of(tmp_path).governance.preview_activation(compiled(case.after))
    assert tuple((one.code, one.message) for one in preview.problems) == case.told
    over = [one.rule.id for one in preview.conflicts]
    if case.told:
        with pytest.raises(InputError):
            activate(tmp_path, case.after, *over)
    activate(tmp_path, case.after, *over, *case.accept)
    assert of(tmp_path).state().policies[-1].accepted == (*over, *case.accept)
    assert of(tmp_path).verify().understated == ()


# --- priced -------------------------------------------------------------------------


def rows(many: int) -> tuple[Row, ...]:
    """Return rows of one person on several days, and of others in one household."""
    own = [("u0", f"2026-01-0{day + 1}", "2026-02-01") for day in range(many)]
    others = [(f"u{one}", "2026-01-01", "2026-02-01") for one in range(1, many)]
    return tuple(
        tuple(
            zip(("uid", "household", "at", "seen"), (uid, "h", at, seen), strict=True)
        )
        for uid, at, seen in (*own, ("u0", "2026-03-01", "2026-03-01"), *others)
    )


#: Worlds of two and of three people and days. What takes more changes in the larger one
#: takes any number in one that is large enough.
WORLDS = Search(rows(2)), Search(rows(3))


def least(old: Mapping[str, Unit], new: Mapping[str, Unit], unit: str) -> int:
    """Return what a unit loses, if each old one loses rho 0.1 by one change."""
    found = INFINITE
    for one in old.values():
        few, more = (world.steps(new[unit], new, one) for world in WORLDS)
        if few == more < float("inf"):
            found = min(found, int(few) ** 2 * STATED)
    return found


@pytest.mark.parametrize("case", REDEFINITIONS.values(), ids=REDEFINITIONS)
@pytest.mark.spec("REL-14")
def test_a_redefined_unit_loses_what_shortest_ways_say(
    tmp_path: Path, case: Case
) -> None:
    begun(tmp_path, case)
    preview = of(tmp_path).governance.preview_activation(compiled(case.after))
    over = [one.rule.id for one in preview.conflicts]
    activate(tmp_path, case.after, *over, *case.accept)
    old, new = (
        compiled(text).policy.vocabulary.unit_facts
        for text in (case.before, case.after)
    )
    told = {
        base.scope: least(old, new, base.unit)
        for base in compiled(case.after).rules.bases
    }
    assert spent(tmp_path) == told
    assert over == [rule for rule, loss in told.items() if loss > 10**12]


@pytest.mark.spec("POL-18")
def test_a_renamed_attribute_keeps_what_was_read_under_its_name(tmp_path: Path) -> None:
    begun(tmp_path, RENAME)
    activate(tmp_path, BY_SITE.replace("town: low}", "town: low}, was: {page: site}"))
    assert spent(tmp_path) == {"short": STATED, "long": STATED}


@pytest.mark.spec("POL-19")
def test_swapped_label_values_keep_what_was_released_under_them(tmp_path: Path) -> None:
    begun(tmp_path, SWAP)
    before = spent(tmp_path)
    swap = "was: {public: internal, internal: public}"
    activate(tmp_path, SWAPPED.replace("default:", f"{swap}, default:"))
    assert spent(tmp_path) == before
    assert before["short @strict"] == STATED


def most(said: tuple[bool, bool], read: tuple[str, str]) -> int:
    """Return the most that a person loses by two releases of 0.1 each.

    Args:
        said: Whether, at each of them, nobody was said to move.
        read: The region that each of them reads.
    """
    return max(
        sum(STATED for own, part in zip(lived, read, strict=True) if own == part)
        for lived in product(("EU", "US"), repeat=2)
        if lived[0] == lived[1] or not all(said)
    )


@pytest.mark.parametrize("first", [REGIONS, FIXED], ids=["late", "from the start"])
@pytest.mark.parametrize("second", ["EU", "US"])
@pytest.mark.spec("REL-16")
def test_who_is_said_to_stay_may_have_moved_before(
    tmp_path: Path, first: str, second: str
) -> None:
    limit = "rho: 0.15"
    tight = [text.replace("rho: 1}", f"{limit}}}") for text in (first, FIXED)]
    begun(tmp_path, LATE._replace(before=tight[0]))
    if first != FIXED:
        activate(tmp_path, tight[1])
    written = release("r-2")
    written["mechanisms"][0]["where"] = {"region": [second]}
    loses = most((first == FIXED, True), ("EU", second))
    assert of(tmp_path).submit(written).allowed == (loses <= 15 * STATED // 10)


# --- ledgers of earlier versions ------------------------------------------------------


def of_old(folder: Path, case: Case) -> None:
    """Make a ledger in which a version let it happen unasked."""
    begun(folder / "new", case)
    followed = with_policy([*of(folder / "new").records()], case.after)
    store_log(folder, as_written_by(case.version, followed))


def store_log(folder: Path, records: list[Record]) -> None:
    with SqliteStore(folder / "ledger.db", wait_seconds=20).turn() as turn:
        turn.append(records)


@pytest.fixture(params=CASES, name="old")
def _old(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Case:
    monkeypatch.chdir(tmp_path)
    of_old(tmp_path, CASES[request.param])
    return CASES[request.param]


@pytest.mark.spec("LED-24")
def test_an_old_ledger_does_not_verify_and_names_what_is_understated(
    old: Case,
) -> None:
    verified = run("ledger", "verify")
    assert run("audit", "export", "-o", "bundle.zip").exit_code == 0
    audited = run("audit", "verify", "bundle.zip")
    for found in (verified, audited):
        assert found.exit_code == 6
        told = " ".join(found.stderr.split())
        assert [one for one in old.named if one not in told] == []
    status = run("status")
    assert status.exit_code == 0
    assert all(one in " ".join(status.stderr.split()) for one in old.named)


@pytest.mark.spec("LED-24")
def test_the_same_policy_is_activated_again_and_then_it_verifies(
    old: Case, tmp_path: Path
) -> None:
    with pytest.raises(VerificationError):
        of(tmp_path).verify()
    preview = of(tmp_path).governance.preview_activation(compiled(old.after))
    assert not preview.holds_already
    assert tuple((one.code, one.message) for one in preview.problems) == old.told
    history = history_of(of(tmp_path).records(), NOON)
    assert what_if(history, compiled(old.after)).problems == preview.problems
    over = [one.rule.id for one in preview.conflicts]
    activate(tmp_path, old.after, *over, *old.accept)
    entries = of(tmp_path).verify().entries
    assert of(tmp_path).state().policies[-1].accepted == (*over, *old.accept)
    # From then on, it is the active one, and nothing is written.
    activate(tmp_path, old.after)
    assert of(tmp_path).verify().entries == entries


@pytest.mark.spec("LED-24")
def test_an_old_ledger_without_such_a_past_verifies(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "a limit": (POLICY, POLICY.replace("rho: 9", "rho: 8")),
        "a region": (POLICY, FIXED),
        "a new label": (POLICY, LABELED),
        "a rule": (BY_PAGE, BY_PAGE.replace('"page"', '"town"')),
    }
    for name, (before, after) in changes.items():
        folder = tmp_path / name
        folder.mkdir()
        of_old(folder, Case(before, after, 5, (), (), ()))
        assert of(folder).verify().understated == (), name
        assert of(folder).governance.preview_activation(compiled(after)).holds_already
        history = history_of(of(folder).records(), NOON)
        assert what_if(history, compiled(after)).problems == (), name

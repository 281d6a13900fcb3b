"""People have a say: approvals, another policy, remarks and disclosures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from samples.small import NOON, POLICY, compiled, counts

from modicum.api.local import Workspace
from modicum.api.local.backfill import price_past, refuse_future
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    StaleError,
    UsageError,
)
from modicum.ledger import event_of
from modicum.ledger.decision.approvals import ApprovalState
from modicum.ledger.log.events import (
    Annotated,
    DisclosureRecorded,
    PastRecorded,
    PolicyActivated,
    ReleaseReserved,
)
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

ROLES = "roles: {officer: [olga, pavel], steward: [sam]}\n"
APPROVED = (
    POLICY
    + ROLES
    + """
approvals:
  - {when: 'release.audience == "public"', need: 2, from: [officer]}
"""
)
ACTIVATED = POLICY + ROLES + "activation: {need: 1, from: [officer]}\n"


def of(folder: Path, actor: str, policy: str | None = None) -> Workspace:
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        FixedClock(NOON),
        policy=None if policy is None else compiled(policy),
        actor=actor,
    )


def bodies(folder: Path) -> list[Any]:
    records = list(of(folder, "reader").records())
    return [event_of(record, record.seq).body for record in records]


PUBLIC = counts("r-1", audience="public")


# --- approvals --------------------------------------------------------------------


@pytest.mark.spec("POL-11")
def test_a_release_is_reserved_once_enough_people_agree(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    first = of(tmp_path, "olga").governance.approve(PUBLIC, reason="little is told")
    assert [(one.agreed, one.missing) for one in first.approval_states] == [
        (("olga",), 1)
    ]
    with pytest.raises(ApprovalError) as caught:
        of(tmp_path, "ann").submit(PUBLIC)
    assert "missing 1 more of pavel" in caught.value.render()
    # That somebody spoke about it does not tell what it is: only a request does.
    with pytest.raises(InputError, match="nobody has requested"):
        of(tmp_path, "pavel").governance.approve("r-1", reason="agreed")
    of(tmp_path, "ann").governance.request(PUBLIC, reason="the report")
    of(tmp_path, "pavel").governance.approve("r-1", reason="agreed")
    assert of(tmp_path, "ann").submit(PUBLIC).status == "reserved"
    (reserved,) = [one for one in bodies(tmp_path) if isinstance(one, ReleaseReserved)]
    assert reserved.approved_by == ("olga", "pavel")
    assert of(tmp_path, "reader").verify().decisions == 1
    with pytest.raises(ConflictError):
        of(tmp_path, "olga").governance.reject("r-1", reason="too late")


@pytest.mark.spec("POL-11")
def test_who_asks_does_not_approve(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    for name in ("olga", "pavel"):
        of(tmp_path, name).governance.approve(PUBLIC, reason="agreed")
    with pytest.raises(ApprovalError):  # By submitting it, olga asks for it.
        of(tmp_path, "olga").submit(PUBLIC)
    named = counts("r-2", audience="public", requester="olga")
    with pytest.raises(ApprovalError, match="cannot approve"):
        of(tmp_path, "olga").governance.approve(named, reason="mine")
    of(tmp_path, "olga").governance.reject(named, reason="not like this")
    of(tmp_path, "olga").governance.approve(named, reason="taken back")
    of(tmp_path, "pavel").governance.approve(named, reason="agreed")
    with pytest.raises(ApprovalError):  # Nor does whom the release names.
        of(tmp_path, "ann").submit(named)
    assert of(tmp_path, "ann").submit(PUBLIC).allowed


@pytest.mark.spec("POL-11")
def test_a_refusal_blocks_until_it_is_taken_back(tmp_path: Path) -> None:
    more = APPROVED.replace("pavel]", "pavel, quin]")
    of(tmp_path, "admin", more).init()
    for name in ("olga", "pavel"):
        of(tmp_path, name).governance.approve(PUBLIC, reason="agreed")
    of(tmp_path, "quin").governance.reject(PUBLIC, reason="a leak")
    with pytest.raises(ApprovalError, match="needs approval") as caught:
        of(tmp_path, "ann").submit(PUBLIC)
    assert "rejected by quin" in caught.value.render()
    of(tmp_path, "quin").governance.approve(PUBLIC, reason="mended")
    assert of(tmp_path, "ann").submit(PUBLIC).allowed


@pytest.mark.spec("POL-11")
def test_other_contents_are_not_approved(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    for name in ("olga", "pavel"):
        of(tmp_path, name).governance.approve(PUBLIC, reason="agreed")
    with pytest.raises(ApprovalError):
        of(tmp_path, "ann").submit(counts("r-1", rho="0.002", audience="public"))
    other = counts("r-1", rho="0.002", audience="public")
    of(tmp_path, "olga").governance.approve(other, reason="also this")
    with pytest.raises(InputError) as caught:
        of(tmp_path, "pavel").governance.reject("r-1", reason="which?")
    assert caught.value.code is Code.RELEASE_CONFLICT


def test_a_word_that_cannot_count_is_refused(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    for name in ("bob", "sam"):  # Sam is a steward, and officers are asked.
        with pytest.raises(ApprovalError):
            of(tmp_path, name).governance.approve(PUBLIC, reason="agreed")
    with pytest.raises(ApprovalError, match="needs no approval"):
        of(tmp_path, "olga").governance.approve(counts("r-3"), reason="agreed")
    with pytest.raises(InputError):
        of(tmp_path, "olga").governance.approve(PUBLIC, reason=" ")
    with pytest.raises(InputError):
        of(tmp_path, "olga").governance.approve("r-9", reason="never heard of")
    with pytest.raises(UsageError):
        of(tmp_path / "elsewhere", "olga").governance.approve(PUBLIC, reason="agreed")
    assert len(bodies(tmp_path)) == 1


def test_what_was_said_can_be_read(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    of(tmp_path, "olga").governance.approve(PUBLIC, reason="fine")
    office = of(tmp_path, "reader").governance
    (vote,) = office.votes("r-1")
    assert (vote.by, vote.approves, vote.roles) == ("olga", True, ("officer",))
    assert (vote.seq, vote.reason) == (2, "fine")
    (states,) = office.approval_states(PUBLIC)
    assert states.left == ("pavel",)
    assert office.votes("r-2") == ()


def test_the_same_word_again_adds_nothing(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    of(tmp_path, "ann").governance.request(PUBLIC, reason="the report")
    office = of(tmp_path, "olga").governance
    first = office.approve(PUBLIC, reason="fine")
    again = office.approve("r-1", reason=" fine ")
    assert (first.repeated, again.repeated) == (False, True)
    assert (again.seq, again.approval_states) == (3, first.approval_states)
    assert (
        office.approve(PUBLIC, reason="fine").approval_states == first.approval_states
    )
    assert len(bodies(tmp_path)) == 3
    # Another reason, another person, another content and a change of mind are new.
    assert not office.approve(PUBLIC, reason="finer").repeated
    assert not of(tmp_path, "pavel").governance.approve("r-1", reason="finer").repeated
    other = counts("r-1", rho="0.002", audience="public")
    assert not office.approve(other, reason="finer").repeated
    for verb in (office.reject, office.approve):
        assert not verb(PUBLIC, reason="finer").repeated
    assert len(bodies(tmp_path)) == 8


# --- one person with two names ----------------------------------------------------

TWO_NAMES = APPROVED.replace("[olga, pavel]", "[mia, Mia]")
BOTH_NAMES = TWO_NAMES + "activation: {need: 2, from: [officer]}\n"


def test_one_person_has_one_name_in_the_roles() -> None:
    for roles in ("{officer: [mia, Mia]}", "{officer: [mia], steward: [ada, MIA]}"):
        with pytest.raises(InputError, match="are one person") as caught:
            compiled(f"{POLICY}roles: {roles}\n").refuse_mistakes()
        assert caught.value.code is Code.DUPLICATE_NAME
    compiled(f"{POLICY}roles: {{a: [mia, mio], b: [mia]}}\n").refuse_mistakes()


@pytest.mark.spec("POL-11")
def test_who_has_two_names_agrees_once(tmp_path: Path) -> None:
    of(tmp_path, "admin", BOTH_NAMES).init()
    of(tmp_path, "mia").governance.approve(PUBLIC, reason="fine")
    with pytest.raises(ApprovalError, match="cannot approve") as caught:
        of(tmp_path, "Mia").governance.approve(PUBLIC, reason="fine")
    assert "differs only in case" in caught.value.render()
    with pytest.raises(InputError, match="nobody has requested"):
        of(tmp_path, "Mia").governance.approve("r-1", reason="fine")
    with pytest.raises(ApprovalError, match="needs approval"):
        of(tmp_path, "ann").submit(PUBLIC)
    with pytest.raises(ApprovalError, match="needs approval"):
        of(tmp_path, "ann").submit(PUBLIC, publish=True)
    new = compiled(POLICY)
    of(tmp_path, "mia").governance.approve_policy(new, reason="fine")
    with pytest.raises(ApprovalError, match="needs approval"):
        of(tmp_path, "admin").governance.activate(new, reason="simpler")
    assert of(tmp_path, "reader").verify().entries == 3


@pytest.mark.spec("POL-11")
def test_a_log_of_a_version_that_counted_names_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of(tmp_path, "admin", BOTH_NAMES).init()
    new = compiled(POLICY)
    with monkeypatch.context() as earlier:
        by_names = property(lambda one: max(one.approval.need - len(one.agreed), 0))
        earlier.setattr(ApprovalState, "missing", by_names)
        earlier.setattr("modicum.ledger.decision.approvals.person_key", str)
        for name in ("mia", "Mia"):
            of(tmp_path, name).governance.approve(PUBLIC, reason="fine")
            of(tmp_path, name).governance.approve_policy(new, reason="fine")
        assert of(tmp_path, "ann").submit(PUBLIC, publish=True).allowed
        assert of(tmp_path, "ann").governance.activate(new, reason="simpler").changed
    assert of(tmp_path, "reader").verify().decisions == 1
    assert of(tmp_path, "ann").submit(counts("r-2")).allowed


def test_who_asks_is_told_that_they_do_not_count(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    for name in ("olga", "pavel"):
        of(tmp_path, name).governance.approve(PUBLIC, reason="agreed")
    with pytest.raises(ApprovalError) as caught:
        of(tmp_path, "Olga").submit(PUBLIC)
    result = caught.value.render()
    assert "missing 1 more and no approver is left" in result
    assert "not counted: olga, who asks for it" in result
    assert "help: have it requested by somebody" in result
    assert of(tmp_path, "ann").submit(PUBLIC).allowed


def test_a_name_in_other_capitals_is_shown_as_it_is_written(tmp_path: Path) -> None:
    of(tmp_path, "admin", APPROVED).init()
    with pytest.raises(ApprovalError) as caught:
        of(tmp_path, "OLGA").governance.approve(PUBLIC, reason="agreed")
    assert "it has `olga`" in caught.value.render()
    assert len(bodies(tmp_path)) == 1


# --- another policy ---------------------------------------------------------------


@pytest.mark.spec("POL-15")
def test_a_policy_takes_the_place_of_another(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).init()
    of(tmp_path, "ann").submit(counts("r-1"), publish=True)
    tighter = compiled(POLICY.replace("high: 1.0}", "high: 0.9}"))
    office = of(tmp_path, "admin").governance
    done = office.activate(tighter, reason="caution", replaces=compiled().policy.digest)
    assert (done.changed, done.preview.conflicts) == (True, ())
    state = of(tmp_path, "reader").state()
    assert state.policy is not None
    assert state.policy.digest == tighter.policy.digest
    again = office.activate(tighter, reason="caution")
    assert (again.changed, again.seq) == (False, state.seq)
    with pytest.raises(StaleError):
        of(tmp_path, "ann", POLICY).submit(counts("r-2"))
    assert of(tmp_path, "ann").submit(counts("r-2")).allowed
    assert of(tmp_path, "reader").verify().decisions == 2


def test_another_policy_than_the_one_reviewed_is_not_replaced(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).init()
    new = compiled(POLICY.replace("high: 1.0}", "high: 0.9}"))
    for digest in ("0" * 64, compiled().policy.digest[:8], ""):
        for verb in (
            lambda digest=digest: of(tmp_path, "a").governance.preview_activation(
                new, replaces=digest
            ),
            lambda digest=digest: of(tmp_path, "a").governance.activate(
                new, reason="why", replaces=digest
            ),
        ):
            with pytest.raises(StaleError):
                verb()


TIGHT = POLICY.replace("budget: 2.0}", "budget: 0.1}")


@pytest.mark.spec("POL-15")
def test_conflicts_are_accepted_one_by_one(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).init()
    of(tmp_path, "ann").submit(counts("r-1", rho="0.002"), publish=True)
    office, new = of(tmp_path, "admin").governance, compiled(TIGHT)
    preview = office.preview_activation(new)
    assert preview.made == {"global @standard", "global @black-box"}
    with pytest.raises(InputError) as caught:
        office.activate(new, reason="much less")
    assert {one.code for one in caught.value.problems} == {Code.POLICY_CONFLICT}
    assert "--accept-conflict 'global @standard'" in caught.value.render()
    with pytest.raises(InputError) as caught:
        office.activate(new, reason="much less", accept=["global @standard"])
    assert len(caught.value.problems) == 1
    with pytest.raises(InputError, match="no conflict is named"):
        office.activate(new, reason="much less", accept=["global", "attr:age"])
    assert len(bodies(tmp_path)) == 4
    office.activate(new, reason="much less", accept=["global"])
    activated = bodies(tmp_path)[-1]
    assert isinstance(activated, PolicyActivated)
    assert activated.reason == "much less"
    assert activated.accepted == ("global @standard", "global @black-box")
    assert not of(tmp_path, "ann").submit(counts("r-2", rho="1e-9")).allowed
    # What was exceeded before and is no tighter now need not be accepted again.
    same = compiled(TIGHT.replace("name: small", "name: renamed"))
    assert office.preview_activation(same).made == frozenset()
    office.activate(same, reason="a better name")
    assert bodies(tmp_path)[-1].accepted == ()


def test_what_was_given_up_makes_no_conflict(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).init()
    of(tmp_path, "ann").submit(counts("r-1", rho="0.002"))
    office, new = of(tmp_path, "admin").governance, compiled(TIGHT)
    assert office.preview_activation(new).made
    of(tmp_path, "ann").cancel("r-1", reason="given up")
    assert not office.preview_activation(new).conflicts
    assert office.activate(new, reason="much less").changed


@pytest.mark.spec("POL-15")
def test_people_may_have_to_agree_to_the_next_policy(tmp_path: Path) -> None:
    of(tmp_path, "admin", ACTIVATED).init()
    new = compiled(POLICY)
    with pytest.raises(ApprovalError, match="needs approval"):
        of(tmp_path, "admin").governance.activate(new, reason="simpler")
    with pytest.raises(ApprovalError):
        of(tmp_path, "sam").governance.approve_policy(new, reason="agreed")
    said = of(tmp_path, "olga").governance.approve_policy(new, reason="agreed")
    assert said.approval_states[0].given
    with pytest.raises(ApprovalError):  # Who activates it asks for it.
        of(tmp_path, "olga").governance.activate(new, reason="simpler")
    of(tmp_path, "pavel").governance.reject_policy(new, reason="not yet")
    with pytest.raises(ApprovalError):
        of(tmp_path, "admin").governance.activate(new, reason="simpler")
    of(tmp_path, "pavel").governance.approve_policy(new, reason="now")
    assert of(tmp_path, "admin").governance.activate(new, reason="simpler").changed
    with pytest.raises(ApprovalError, match="needs no approval"):
        of(tmp_path, "olga").governance.approve_policy(
            compiled(ACTIVATED), reason="back"
        )
    of(tmp_path, "reader").verify()


def test_an_empty_ledger_has_no_policy_to_replace(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        of(tmp_path, "admin").governance.activate(compiled(), reason="first")
    with pytest.raises(UsageError):
        of(tmp_path, "admin").governance.preview_activation(compiled())


REGIONS = """
population:
  partition_by:
    region: {values: [EU, US], immutable: [user]}
"""
FINER = REGIONS.replace("[EU, US]", "[DE, FR, US]").replace(
    "[user]}", "[user], was: {EU: [DE, FR]}}"
)


@pytest.mark.spec("POL-14")
def test_history_is_told_in_the_words_of_the_new_policy(tmp_path: Path) -> None:
    """Each region has its own budget; EU becomes DE or FR, and neither gains."""
    small = POLICY.replace("budget: 2.0}", "budget: 0.5}")
    of(tmp_path, "admin", small + REGIONS).init()
    ask = of(tmp_path, "ann")
    assert ask.submit(counts("eu", rho="0.003", where={"region": "EU"})).allowed
    ask.start("eu")
    assert ask.submit(counts("open", rho="0.001", where={"region": "EU"})).allowed
    new = compiled(small + FINER)
    of(tmp_path, "admin").governance.activate(new, reason="finer regions")
    ask = of(tmp_path, "ann")
    for region in ("DE", "FR"):
        much = counts(f"much-{region}", rho="0.003", where={"region": region})
        assert not ask.submit(much).allowed
    assert ask.submit(counts("us", rho="0.003", where={"region": "US"})).allowed
    # An open reservation is given back under the words it was told in.
    ask.cancel("open", reason="given up")
    assert of(tmp_path, "reader").verify().entries == len(bodies(tmp_path))
    gone = compiled(small + REGIONS.replace("[EU, US]", "[DE, US]"))
    office = of(tmp_path, "admin").governance
    assert office.preview_activation(gone).made == {
        "global @standard"
    }  # Who was FR may be US now.
    office.activate(gone, reason="one country left", accept=["global"])
    assert (
        not of(tmp_path, "ann")
        .submit(counts("us-2", rho="0.003", where={"region": "US"}))
        .allowed
    )
    of(tmp_path, "reader").verify()


@pytest.mark.spec("LED-10")
def test_a_rule_over_its_limit_denies_in_the_cells_that_are_over(
    tmp_path: Path,
) -> None:
    """So it is told, too: by the one who activates, and by what denies."""
    of(tmp_path, "admin", POLICY + REGIONS).init()
    of(tmp_path, "ann").submit(
        counts("eu", rho="0.002", where={"region": "EU"}), publish=True
    )
    office, tight = of(tmp_path, "admin").governance, compiled(TIGHT + REGIONS)
    with pytest.raises(InputError) as caught:
        office.activate(tight, reason="less")
    result = caught.value.render()
    assert "it then denies what it matches, in the cells over the limit:" in result
    office.activate(tight, reason="less", accept=["global"])
    for region, allowed in (("EU", False), ("US", True)):
        tiny = counts(f"tiny-{region}", rho="1e-9", where={"region": region})
        assert of(tmp_path, "ann").submit(tiny).allowed == allowed
    standing = {one.rule.id: one for one in of(tmp_path, "ann").standings()}
    assert standing["global @standard"].cells_denying == 1
    assert not of(tmp_path, "ann").submit(counts("all", rho="1e-9")).allowed


def test_where_a_rule_has_one_cell_no_cells_are_spoken_of(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).init()
    of(tmp_path, "ann").submit(counts("r-1", rho="0.002"), publish=True)
    with pytest.raises(InputError) as caught:
        of(tmp_path, "admin").governance.activate(compiled(TIGHT), reason="less")
    assert "it then denies what it matches:" in caught.value.render()


# --- what is known of the past ----------------------------------------------------


DIVIDED = POLICY.replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id},"
    " user-day: {id: user_id, time: {column: at, period: day}, within: user}}",
) + (
    "population:\n"
    "  partition_by: {region: {values: [EU, US], immutable: [user]}}\n"
    "  groups: {immutable: [user]}\n"
    "  time_detail: {user-day: 30}\n"
)


def past(**more: Any) -> dict[str, Any]:
    described = counts("old", **more)
    described["mechanisms"][0]["cost"]["user-day"] = {"rho": 0.001}
    return described


def test_what_nobody_knows_is_assumed_and_written_down(tmp_path: Path) -> None:
    ws = of(tmp_path, "admin", DIVIDED)
    described = past()
    described["mechanisms"][0]["attributes"] = "all"
    decision = ws.backfill(described)
    body = bodies(tmp_path)[-1]
    assert isinstance(body, PastRecorded)
    assert body.release.mechanisms[0].attributes == ("age", "diagnosis", "steps")
    assert body.assumptions == (
        "the mechanism: attributes unknown; all 3 assumed",
        "the mechanism: label `ml` is not stated; assumed is the strictest value"
        " `none`",
        "the mechanism: no `where` stated: everybody",
        "the mechanism: no `periods` stated: all of time",
        "the mechanism: no `groups` stated: all",
        "`released_on` is not stated; assumed is the day of recording",
    )
    for one in body.assumptions:
        assert f"assumed: {one}" in decision.explain()
    ws.verify()


def test_what_is_known_is_not_assumed(tmp_path: Path) -> None:
    ws = of(tmp_path, "admin", DIVIDED)
    ws.backfill(
        past(
            ml="black-box",
            where={"region": "EU"},
            periods="2026-01",
            groups=1,
            released_on="2026-02-01",
        )
    )
    assert bodies(tmp_path)[-1].assumptions == ()


@pytest.mark.parametrize(
    ("said", "now", "refused"),
    [
        ("2026-05-01", "2026-05-01T00:00:00.000000Z", False),
        ("2026-05-02", "2026-05-01T23:59:59.999999Z", False),
        ("2026-05-03", "2026-05-01T23:59:59.999999Z", True),
        ("9999-12-31", "2026-05-01T12:00:00.000000Z", True),
        ("2027-01-01", "2026-12-31T12:00:00.000000Z", False),
        ("9999-12-31", "9999-12-31T12:00:00.000000Z", False),
        ("0001-01-01", "2026-05-01T12:00:00.000000Z", False),
        ("in spring", "2026-05-01T12:00:00.000000Z", False),
        (None, "2026-05-01T12:00:00.000000Z", False),
    ],
)
def test_what_is_past_was_out_by_tomorrow(
    said: str | None, now: str, refused: bool
) -> None:
    recorded = price_past(counts("old"), compiled(POLICY).policy.vocabulary)[0]
    metadata = {} if said is None else {"released_on": said}
    one = replace(recorded, metadata=metadata)
    if not refused:
        refuse_future(one, now)
        return
    with pytest.raises(InputError) as caught:
        refuse_future(one, now)
    assert caught.value.code is Code.OUT_OF_RANGE
    assert f"`released_on` is {said}, and today is 2026-05-01" in str(caught.value)


def test_only_some_mechanisms_may_leave_something_out(tmp_path: Path) -> None:
    described = counts("old")
    (one,) = described["mechanisms"]
    described["mechanisms"] = [
        {**one, "name": "a", "ml": "none"},
        {**one, "name": "b", "attributes": "all"},
    ]
    of(tmp_path, "admin", POLICY).backfill(described)
    assert bodies(tmp_path)[-1].assumptions == (
        "mechanism b: attributes unknown; all 3 assumed",
        "mechanism b: label `ml` is not stated; assumed is the strictest value `none`",
    )


def test_a_mistake_in_the_past_is_a_mistake(tmp_path: Path) -> None:
    ws = of(tmp_path, "admin", POLICY)
    with pytest.raises(InputError) as caught:
        ws.backfill(counts("old", attributes=("diagnoses",)))
    assert caught.value.code is Code.UNKNOWN_ATTRIBUTE
    described = counts("new")
    described["mechanisms"][0]["attributes"] = "all"
    with pytest.raises(InputError):  # Only of the past may so little be known.
        ws.submit(described)


# --- remarks ----------------------------------------------------------------------


def test_remarks_stand_in_the_log(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).submit(counts("r-1"))
    office = of(tmp_path, "eve").governance
    assert office.annotate("the board asked about it", about="r-1") == 3
    office.annotate("moved to another machine")
    assert bodies(tmp_path)[2:] == [
        Annotated("r-1", "the board asked about it"),
        Annotated("", "moved to another machine"),
    ]
    for wrong in ({"about": "r-2"}, {}):
        with pytest.raises(InputError):
            office.annotate("what?" if wrong else "  ", **wrong)
    assert of(tmp_path, "reader").state().annotations == 2


def test_a_remark_may_be_about_a_disclosure(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY).init()
    office = of(tmp_path, "eve").governance
    office.disclose(DISCLOSED)
    assert office.annotate("asked by the court", about="extract-2018") == 3
    with pytest.raises(InputError, match="no release and no disclosure"):
        office.annotate("what?", about="extract-2019")


DISCLOSED: dict[str, Any] = {
    "disclosure": "extract-2018",
    "what": "a table of counts, exactly",
    "attributes": ["steps", "age"],
    "reason": "court order",
    "released_on": "2018-05-04",
}


def test_a_disclosure_stands_in_the_log_and_costs_nothing(tmp_path: Path) -> None:
    of(tmp_path, "admin", POLICY + REGIONS).init()
    office = of(tmp_path, "eve").governance
    body, seq = office.disclose({**DISCLOSED, "where": {"region": "EU"}})
    assert seq == 2
    assert bodies(tmp_path)[-1] == body
    assert isinstance(body, DisclosureRecorded)
    assert body.attributes == ("age", "steps")
    assert body.part.where == ((("region", ("EU",)),),)
    with pytest.raises(ConflictError):
        office.disclose(DISCLOSED)
    every, _ = office.disclose({**DISCLOSED, "disclosure": "b", "attributes": "all"})
    assert every.attributes == ("age", "diagnosis", "steps")
    assert of(tmp_path, "ann").submit(counts("r-1")).allowed


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"attributes": ["stepz"]}, Code.UNKNOWN_ATTRIBUTE),
        ({"what": " "}, Code.MISSING_KEY),
        ({"reason": 3}, Code.WRONG_TYPE),
        ({"disclosure": "no name"}, Code.BAD_NAME),
        ({"because": "x"}, Code.UNKNOWN_KEY),
        ({"where": {"region": "EU"}}, Code.UNKNOWN_ATTRIBUTE),
    ],
)
def test_a_mistake_in_a_disclosure_is_refused(
    tmp_path: Path, change: dict[str, Any], code: Code
) -> None:
    of(tmp_path, "admin", POLICY).init()
    with pytest.raises(InputError) as caught:
        of(tmp_path, "eve").governance.disclose({**DISCLOSED, **change})
    assert caught.value.code is code
    assert len(bodies(tmp_path)) == 1

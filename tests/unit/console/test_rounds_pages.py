"""The pages of rounds: opened, planned, explained, and committed as they were read."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from samples.jobs import finished
from samples.served import Served, served
from samples.small import POLICY, counts

from modicum.console.pages.rounds import REQUESTS_MAX, plan_view, requests_of


def wish(name: str, sigma: float = 20, data_set: str = "visits") -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "utility": 3,
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


#: More than there is room for.
WISHES = [wish(f"w{number}", 10 + number) for number in range(8)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(
        tmp_path / "l.db", policy=tmp_path / "policy.yaml", console=True
    ) as found:
        yield found


def opened(server: Served, name: str = "q1/spring", **more: str) -> str:
    answered = server.fill("petra", "/rounds/open", round=name, **more)
    assert answered.status_code == 303, answered.text
    return str(answered.headers["location"]).partition("?")[0]


def planned(server: Served, page: str, wishes: Any = WISHES, who: str = "petra") -> str:
    """Plan the requests on the page of a round; return the address of the plan."""
    text = "".join(f"{json.dumps(one)}\n" for one in wishes)
    answered = server.fill(who, f"{page}/plan", requests=text, solver="dpk")
    assert answered.status_code == 303, answered.text
    place = str(answered.headers["location"])
    begun = httpx2.Response(202, headers={"location": f"/jobs/{job_in(place)}"})
    assert finished(server, who, begun)["state"] == "done"
    return place


def job_in(place: str) -> str:
    return place.rpartition("job=")[2]


def shown(server: Served, place: str, who: str = "petra") -> str:
    answered = server.page(who, place)
    assert answered.status_code == 200, answered.text
    return html.unescape(answered.text)


def fields_of(page: str) -> dict[str, str]:
    """Return the fields of the form that commits a plan."""
    form = page.partition('aria-label="Commit the plan"')[2].partition("</form>")[0]
    named = re.findall(r'name="(tag|job)" value="(.+?)">', form)
    return {**dict(named), "days": "7"}


def test_a_round_is_opened_and_shown(server: Served) -> None:
    assert "No round was opened yet" in shown(server, "/rounds", "ann")
    page = opened(server, unlocked="user = 25%\n")
    assert "Unlocked by hand: user 25 %" in shown(server, page, "ann")
    assert "● open" in shown(server, "/rounds", "ann")
    refused = server.fill("petra", "/rounds/open", round="q2", unlocked="user=12%")
    assert refused.status_code == 409
    assert ">user=12%</textarea>" in refused.text
    assert server.fill("ann", "/rounds/open", round="q2").status_code == 403
    assert "Your roles do not allow you to open rounds." in shown(
        server, "/rounds", "ann"
    )
    assert len(server.get("ann", "/rounds").json()["rounds"]) == 1


def test_what_each_round_left_of_a_rule_is_drawn(server: Served) -> None:
    assert "Budget left" not in shown(server, "/rounds")
    opened(server, unlocked="user = 50%\n")
    one = counts("r-1", rho="0.001", attributes=("age",), dataset="visits")
    assert server.post("ann", "/releases", one).json()["decision"] == "allow"
    drawn = shown(server, "/rounds", "ann")
    chosen = re.findall("<option selected>(.*?)</option>", drawn)[0]
    tightest = server.get("ann", "/rules", params={"order": "tightest"}).json()
    assert chosen == tightest["rules"][0]["rule"]
    found = server.get("ann", "/rule-rounds", params={"rule": chosen}).json()
    (everybody,) = found["segments"]
    assert 0 < everybody["left"][0] < 1
    percent = floor(1000 * everybody["left"][0]) / 10
    assert f"everybody has least left of 1 segment: {percent:g} %" in drawn
    other = shown(server, "/rounds?rule=global @black-box", "ann")
    assert "<option selected>global @black-box</option>" in other
    unknown = shown(server, "/rounds?rule=nothing", "ann")
    assert "no rule matches `nothing`" in unknown
    assert "● open" in unknown


def test_a_plan_says_why_not_and_is_committed(server: Served) -> None:
    page = opened(server)
    place = planned(server, page)
    plan = server.get("petra", f"/jobs/{job_in(place)}").json()["result"]
    seen = shown(server, place)
    assert plan["plan"] in seen
    rejected = [one for one in plan["requests"] if one["outcome"] == "rejected"]
    assert rejected
    for one in rejected:
        assert one["why"][0] in seen
    only = shown(server, f"{place}&outcome=rejected").partition('id="requests"')[2]
    assert rejected[0]["release"] in only
    assert plan["accepted"][0] not in re.findall(r'scope="row">([^<]+)<', only)
    fields = fields_of(seen)
    assert fields["tag"] == f'"{plan["ledger"]["head"]}"'
    done = server.fill("petra", f"{page}/commit", **fields)
    assert done.status_code == 303, done.text
    after = shown(server, str(done.headers["location"]), "ann")
    for release in plan["accepted"]:
        assert f"/releases/{release}" in after
    assert "It is committed." in shown(server, place)
    assert f"({len(plan['accepted'])} releases)" in shown(server, "/rounds", "ann")


def test_a_stale_plan_reserves_nothing(server: Served) -> None:
    page = opened(server)
    place = planned(server, page)
    fields = fields_of(shown(server, place))
    assert server.post("ann", "/releases", wish("other", 500)).status_code == 200
    assert "The ledger has new entries since" in shown(server, place)
    refused = server.fill("petra", f"{page}/commit", **fields)
    assert (refused.status_code, "MOD802" in refused.text) == (412, True)
    assert "Why not" in refused.text  # The plan is still there to be read.
    head = server.get("petra", "/ledger/head").json()["head"]
    forged = server.fill("petra", f"{page}/commit", **{**fields, "tag": f'"{head}"'})
    assert forged.status_code == 412
    assert server.get("ann", "/plans").json() == {"plans": []}


def test_who_plans_may_not_commit(server: Served) -> None:
    page = opened(server)
    place = planned(server, page, who="dara")
    seen = shown(server, place, "dara")
    assert "Your roles do not allow you to commit plans." in seen
    refused = server.fill("dara", f"{page}/commit", **fields_of(seen))
    assert refused.status_code == 403
    others = server.fill("petra", f"{page}/commit", **fields_of(seen))
    assert others.status_code == 404  # A job is its owner's.
    assert plan_is_hidden(server, place)


def plan_is_hidden(server: Served, place: str) -> bool:
    return "reserves nothing" not in shown(server, place, "petra")


def test_releases_of_other_data_sets_are_only_counted(server: Served) -> None:
    page = opened(server)
    place = planned(server, page, [wish("anns", 30), wish("lees-7d31", 30, "labs")])
    fields = fields_of(shown(server, place))
    assert server.fill("petra", f"{page}/commit", **fields).status_code == 303
    seen = shown(server, page, "ann")
    assert "anns" in seen
    assert "lees-7d31" not in seen
    assert "and 1 of data sets that you may not see" in seen


def test_requests_that_are_refused_stay_in_the_form(server: Served) -> None:
    page = opened(server)
    text = "- release: x\n  odd: <b>1</b>\n"
    refused = server.fill("petra", f"{page}/plan", requests=text)
    assert refused.status_code == 422
    assert "<b>1</b>" not in refused.text
    assert f">{text}</textarea>" in html.unescape(refused.text)
    assert "line 2" in refused.text


def test_a_past_round_is_read_only(server: Served) -> None:
    opened(server, "q1")
    opened(server, "q2")
    past = shown(server, "/rounds?as_of=2", "ann")
    assert "q2" not in past
    assert past.count('method="post"') == 1  # To sign out.
    over = shown(server, "/rounds/q1")
    assert "It is over" in over
    assert "Make a plan" not in over


def test_lines_of_json_are_one_document() -> None:
    two = '{"release": "a"}\n\n{"release": "b"}\n'
    assert bytes(requests_of(two)) == b'[{"release": "a"},{"release": "b"}]'
    for text in ('{"release": "a"}', "- release: a\n", '{\n"release": "a"\n}', ""):
        assert requests_of(text) == text


def test_a_page_has_a_part_of_many_requests() -> None:
    many = [
        {"release": f"r{n}", "utility": "1/3", "outcome": "left out", "why": []}
        for n in range(REQUESTS_MAX + 7)
    ]
    plan = {"requests": many, "possible": str(len(many)), "solver": "dpk"}
    found = plan_view(plan, {})
    assert (len(found["requests"]), found["matched"]) == (REQUESTS_MAX, len(many))
    assert found["texts"] is False
    assert plan_view(plan, {"text": "R506"})["matched"] == 1

"""Pages about releases: the list, one release, and the draft of a new one."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from samples.served import Served, served
from samples.small import POLICY, compiled, counts

import modicum as mo
from modicum.api.local.evaluation import price_release
from modicum.api.schema.release import LabelValues, Vocabulary
from modicum.console.release_file import by_unit, kinds, text_of
from modicum.core.yaml_reader import read_document

HOSTILE = "<script>alert('x')</script>"

ASKING = (
    POLICY
    + """
roles: {privacy-officer: [olga, pavel]}
approvals:
  - {when: 'release.purpose == "press"', need: 1, from: [privacy-officer]}
"""
)
WORDS = Vocabulary(
    policy="0" * 64,
    labels={"ml": LabelValues(values=("none", "black-box"), default="none")},
    attributes=("age", "diagnosis", "steps"),
    units=("user",),
)
FORM = {
    "way": "form",
    "id": "w-1",
    "mechanism": "gaussian",
    "attributes": "diagnosis",
    "sensitivity.l2.user": "1",
    "parameter.sigma": "4e1",
    "requester": "a: b # c",
}
QUERY = """\
release: q-1
query:
  sql: "SELECT COUNT(*) AS people FROM people"
  noise: gaussian
  loss: {user: {rho: RHO}}
"""
TABLES = """\
modicum: tables/v1
tables:
  people:
    one_per: user_id
    columns: {user_id: {type: integer}, age: {type: integer}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("releases")
    (folder / "policy.yaml").write_text(ASKING)
    with served(
        folder / "ledger.db", policy=folder / "policy.yaml", console=True
    ) as found:
        for name, who in (("v-1", "amir"), ("v-2", "ann"), ("V-3", "ann")):
            body = counts(name, dataset="visits", purpose=HOSTILE)
            assert found.post(who, "/releases", body).status_code == 200
        found.post("ann", "/releases/V-3:start")
        yield found


def text_in(answered: Any, status: int = 200) -> str:
    assert answered.status_code == status, answered.text
    return html.unescape(answered.text)


def listed(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/releases/([^"?]+)', page)


def events(server: Served) -> list[str]:
    entries = server.get("audra", "/ledger/entries").json()["entries"]
    return [one["kind"] for one in entries]


def head(server: Served) -> Any:
    return server.parts.decider.glance(lambda view: view.state().head)


# --- the list -----------------------------------------------------------------------


def test_releases_are_listed_newest_first_and_filtered(server: Served) -> None:
    whole = listed(server.page("amir", "/releases").text)
    assert [one for one in whole if one.lower().startswith("v-")] == [
        "V-3",
        "v-2",
        "v-1",
    ]
    page = server.page("amir", "/releases?search=V-&status=reserved").text
    assert listed(page) == ["v-2", "v-1"]
    page = server.page("amir", "/releases", params={"search": HOSTILE}).text
    assert listed(page) == []
    assert "No release matches." in page
    assert HOSTILE not in page
    assert html.escape(HOSTILE, quote=False)[:11] in page


def test_a_reader_of_another_data_set_sees_none_of_it(server: Served) -> None:
    page = server.page("lee", "/releases?search=v-").text
    assert listed(page) == []
    assert "v-1" not in page
    assert server.page("lee", "/releases/v-1").status_code == 404


# --- one release --------------------------------------------------------------------


def test_a_release_shows_its_losses_rounded_up_and_its_story(server: Served) -> None:
    body = counts("up", rho="0.00100049")
    server.post("amir", "/releases", body)
    page = server.page("amir", "/releases/up").text
    row = re.search(r"<td>user</td>(.*?)</tr>", page, re.DOTALL)
    assert row is not None
    cells = re.findall(r'<td class="number">([^<]*)', row[1])
    assert cells[:2] == ["infinite", "0.001001"]
    assert "reserved</td><td>amir" in page
    assert "recorded form</h2>" not in page
    recorded = server.page("amir", "/releases/up?recorded=1")
    assert '"grid": "grid-v1"' in text_in(recorded)


def test_a_missing_receipt_is_explained_in_place(server: Served) -> None:
    page = text_in(server.page("amir", "/releases/v-1?receipt=1"))
    assert "this server has no key to sign with" in page
    assert "<h1>v-1</h1>" in page


def test_what_people_wrote_is_text(server: Served) -> None:
    page = server.page("amir", "/releases/v-1").text
    assert HOSTILE not in page
    assert HOSTILE in html.unescape(page)


def test_a_release_is_started_published_and_canceled(server: Served) -> None:
    for name in ("go", "stop"):
        server.post("amir", "/releases", counts(name, dataset="visits"))
    answered = server.fill("amir", "/releases/go/start")
    assert answered.headers["location"] == "/releases/go"
    assert "its loss is spent" in server.page("amir", "/releases/go").text
    assert server.fill("amir", "/releases/go/publish").status_code == 303
    assert server.get("amir", "/releases/go").json()["status"] == "published"
    assert "There is nothing to do" in server.page("amir", "/releases/go").text
    refused = server.fill("amir", "/releases/stop/cancel", reason="")
    assert "canceling a release needs a reason" in text_in(refused, 422)
    assert server.get("amir", "/releases/stop").json()["status"] == "reserved"
    server.fill("amir", "/releases/stop/cancel", reason="late")
    story = server.get("amir", "/releases/stop").json()["story"]
    assert story[-1]["reason"] == "late"
    assert server.get("amir", "/releases/stop").json()["status"] == "canceled"


def test_who_may_not_carry_it_out_reads_why(server: Served) -> None:
    server.post("amir", "/releases", counts("mine", dataset="visits"))
    for who, button, reason in (
        ("ann", "disabled>Start", "amir reserved it"),
        ("olga", "disabled>Start", "only to cancel them"),
        ("audra", "disabled>Start", "Your roles do not allow"),
    ):
        page = server.page(who, "/releases/mine").text
        assert button in page
        assert reason in page
        assert server.fill(who, "/releases/mine/start").status_code == 403
    assert "disabled" not in server.page("dara", "/releases/mine").text
    assert server.get("amir", "/releases/mine").json()["status"] == "reserved"


def test_the_past_has_no_actions(server: Served) -> None:
    page = server.page("amir", "/releases/v-1?as_of=2").text
    assert 'action="/releases/v-1/start"' not in page
    assert "As of" in page
    assert server.page("amir", "/releases/v-2?as_of=2").status_code == 404
    assert '<form id="draft"' not in server.page("amir", "/new-release?as_of=2").text


# --- a draft ------------------------------------------------------------------------

#: A value for each parameter of a form.
_VALUES: Mapping[str, str] = {
    "truth": "0.6",
    "noise-multiplier": "20",
    "steps": "8",
    "cost.eps": "0.1",
    "cost.delta": "1e-9",
    "cost.rho": "",
    "cost.mu": "",
}


@pytest.mark.parametrize("name", kinds())
def test_the_form_describes_each_kind(name: str) -> None:
    kind = kinds()[name]
    fields = {"id": "x", "mechanism": name, "attributes": "age\nsteps"}
    for one in by_unit(kind):
        fields[f"{one}.user"] = _VALUES.get(one, "1")
    for one in kind.described:
        fields[f"parameter.{one}"] = _VALUES.get(one, "2")
    if kind.local:
        fields["public_frame"] = "true"
    if kind.samples:
        fields |= {"sampling.unit": "user", "sampling.rate": "0.01"}
    node = read_document(text_of(fields, WORDS).encode(), "release.yaml")
    recorded = price_release(node, compiled())
    assert recorded.mechanisms[0].description["kind"] == name
    assert recorded.mechanisms[0].attributes == ("age", "steps")


def test_all_ways_give_the_same_release(server: Served) -> None:
    body = {
        "release": "w-1",
        "requester": "a: b # c",
        "mechanisms": [
            {
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": 40,
            }
        ],
    }
    answered = server.fill("amir", "/new-release", do="submit", **FORM)
    assert answered.headers["location"] == "/releases/w-1"
    again = server.post("amir", "/releases", body).json()
    assert (again["retry"], again["status"]) == (True, "reserved")
    text = json.dumps(body)
    fields = {"way": "yaml", "text": text}
    answered = server.fill("amir", "/new-release", do="submit", **fields)
    assert answered.headers["location"] == "/releases/w-1"


def test_a_check_shows_what_each_rule_says_and_stores_nothing(server: Served) -> None:
    before = head(server)
    fields = FORM | {"id": "no", "parameter.sigma": "2"}
    page = text_in(server.fill("amir", "/new-release", do="check", **fields))
    assert "DENY no" in page
    assert "What would be allowed" in page
    row = re.search(r"attr:diagnosis @standard</a>(.*?)</tr>", page, re.DOTALL)
    assert row is not None
    spent, alone, total, limit = map(
        float, re.findall(r'<td class="number">([0-9.]+)', row[1])
    )
    assert total > limit == 1
    assert alone <= total
    assert spent >= 0
    assert 'value="2"' in page
    assert head(server) == before
    live = text_in(server.fill("amir", "/new-release", **fields))
    assert "DENY no" in live
    assert "Show what would be allowed" in live


def test_a_variant_is_taken_over(server: Served) -> None:
    fields = FORM | {"id": "fit", "parameter.sigma": "2"}
    page = server.fill("amir", "/new-release", do="check", **fields).text
    found = re.search(r'name="use" value="([^"]*)"', page)
    assert found is not None
    text = html.unescape(found[1])
    taken = server.fill("amir", "/new-release", use=text, **fields).text
    area = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", taken, re.DOTALL)
    assert area is not None
    assert html.unescape(area[1]) == text
    assert "ALLOW fit" in taken
    assert 'name="parameter.sigma" value="2"' in taken  # The form is kept.


def test_mistakes_are_shown_in_place_with_what_was_typed(server: Served) -> None:
    before = head(server)
    text = f"release: x\nmechanisms: []\nwrong: {HOSTILE}\n"
    page = server.fill("amir", "/new-release", way="yaml", text=text)
    assert "line 3, column 1:" in text_in(page)
    assert HOSTILE not in page.text
    assert text in html.unescape(page.text)
    page = server.fill("amir", "/new-release", way="yaml", text="a: [", do="submit")
    assert 'id="problem"' in text_in(page, 400)
    assert head(server) == before


def test_a_release_that_needs_approval_is_requested(server: Served) -> None:
    fields = FORM | {"id": "press-1", "purpose": "press"}
    page = text_in(server.fill("amir", "/new-release", do="check", **fields))
    assert "Approval by 1 of privacy-officer is needed" in page
    refused = server.fill("amir", "/new-release", do="submit", **fields)
    assert "needs approval" in text_in(refused, 403)
    assert 'value="press-1"' in refused.text
    asked = server.fill(
        "amir", "/new-release", do="submit", reason="for the news", **fields
    )
    assert asked.headers["location"] == "/requests/press-1"
    request = server.get("olga", "/requests/press-1").json()
    assert request["reason"] == "for the news"


def test_a_denied_submission_says_so_and_is_recorded(server: Served) -> None:
    fields = FORM | {"id": "much", "parameter.sigma": "1"}
    page = text_in(server.fill("amir", "/new-release", do="submit", **fields))
    assert "It was submitted and denied." in page
    assert "DENY much" in page
    assert events(server)[-1] == "release-denied"


def test_rights_are_those_of_the_release(server: Served) -> None:
    before = head(server)
    fields = FORM | {"id": "other", "dataset": "labs"}
    page = server.fill("ann", "/new-release", do="check", **fields)
    assert (
        "`ann` is not authorized to check a release for the data set `labs`"
        in text_in(page, 403)
    )
    assert server.fill("ann", "/new-release", do="submit", **fields).status_code == 403
    page = server.fill("audra", "/new-release", do="check", **FORM | {"id": "see"})
    assert "Your roles do not allow you to submit releases." in text_in(page)
    assert head(server) == before


def test_sql_becomes_the_release_of_the_query_file(
    server: Served, tmp_path: Any
) -> None:
    before = head(server)
    fields = {"way": "sql", "query": QUERY.replace("RHO", "0.001"), "tables": TABLES}
    page = server.fill("amir", "/new-release", do="check", **fields).text
    assert "ALLOW q-1" in page
    assert "Cost and accuracy" in page
    found = re.search(r'name="take" value="([^"]*)"', page)
    assert found is not None
    text = html.unescape(found[1])
    (tmp_path / "tables.yaml").write_text(TABLES)
    query = fields["query"].replace("query:", "query:\n  tables: tables.yaml")
    (tmp_path / "query.yaml").write_text(query)
    policy = compiled(ASKING)
    file = mo.load_query(tmp_path / "query.yaml", policy)
    node = read_document(text.encode(), "taken")
    assert (
        price_release(node, policy).content
        == price_release(file.described, policy).content
    )
    taken = server.fill("amir", "/new-release", take=text, **fields).text
    assert 'name="query" value="release: q-1' in taken  # The query is kept.
    assert head(server) == before
    denied = fields | {"query": QUERY.replace("RHO", "5")}
    page = server.fill("amir", "/new-release", do="check", **denied).text
    better = re.search(r'name="use" value="([^"]*)"', page)
    assert better is not None
    assert "sql:" in html.unescape(better[1])

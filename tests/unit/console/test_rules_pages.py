"""Pages of the rules: the list, one rule, and the drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path
from urllib.parse import quote

import pytest
from samples.served import Served, served
from samples.small import POLICY, compiled, counts

#: A purpose that must never become markup.
HOSTILE = "<b>bold</b>"
GLOBAL = "global @standard"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("rules")
    hostile = f"when: 'release.purpose != \"{HOSTILE}\"'"
    text = POLICY.replace('when: "true"', hostile, 1)
    with served(folder / "ledger.db", policy=compiled(text), console=True) as found:
        for name, data_set in (("r-1", "visits"), ("secret-1", "labs")):
            sent = found.post("amir", "/releases", counts(name, dataset=data_set))
            assert sent.json()["decision"] == "allow"
        yield found


def rows(page: str) -> list[str]:
    """Return the ids of the rules in the table."""
    return re.findall(r'<tr><th scope="row"><a href="[^"]*">([^<]*)</a>', page)


def test_the_list_has_every_rule_with_its_state(server: Served) -> None:
    page = server.page("ann", "/rules").text
    found = server.get("ann", "/rules", params={"limit": 500}).json()["rules"]
    assert rows(page) == [one["rule"] for one in found]
    assert f"<caption>{len(found)} rules" in page
    assert re.search(r'class="state ok".*?</span> ok</span> \d+</li>', page)


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"search": "AGE"}, lambda one: "age" in one),
        ({"scope": "global"}, lambda one: one.startswith("global @")),
        ({"context": "standard"}, lambda one: one.endswith("@standard")),
        ({"unit": "user", "search": "cat:"}, lambda one: one.startswith("cat:")),
    ],
)
def test_filters_select_rules(
    server: Served, query: dict[str, str], holds: Callable[[str], bool]
) -> None:
    every = rows(server.page("ann", "/rules").text)
    kept = rows(server.page("ann", "/rules", params=query).text)
    assert kept == list(filter(holds, every))
    assert 0 < len(kept) < len(every)


def test_binding_and_redundant_rules_are_told_apart(server: Served) -> None:
    every = rows(server.page("ann", "/rules").text)
    kept = [
        rows(server.page("ann", "/rules", params={"binding": one}).text)
        for one in ("true", "false")
    ]
    assert sorted(kept[0] + kept[1]) == sorted(every)
    assert all(kept)
    redundant = server.page("ann", f"/rules/{quote(kept[1][0])}").text
    assert "whenever it would deny" in redundant
    assert (
        "it can be the only rule to deny"
        in server.page("ann", f"/rules/{quote(kept[0][0])}").text
    )


def test_the_fullest_come_first(server: Served) -> None:
    page = server.page("ann", "/rules", params={"order": "tightest"}).text
    asked = server.get("ann", "/rules", params={"order": "tightest", "limit": 500})
    assert rows(page) == [one["rule"] for one in asked.json()["rules"]]
    empty = server.page("ann", "/rules", params={"search": HOSTILE}).text
    assert "No rule matches these filters." in empty
    assert HOSTILE not in empty


def test_a_rule_names_its_lines_and_what_is_left(server: Served) -> None:
    page = server.page("amir", f"/rules/{quote(GLOBAL)}").text
    digest = server.get("amir", "/policies/active").json()["digest"]
    rule = server.get("amir", f"/rules/{quote(GLOBAL)}").json()
    assert rule["line"]
    assert f'/policy/{digest}?line={rule["line"]}#L{rule["line"]}"' in page
    assert HOSTILE not in page
    assert "&lt;b&gt;bold" in page
    balance = server.get("amir", "/rules/history", params={"rule": GLOBAL}).json()
    sigma = float(re.search(r"sigma of ([0-9.,]+) or more", page)[1])  # type: ignore[index]
    error = float(re.search(r"within ± ([0-9.,]+) of", page)[1])  # type: ignore[index]
    least = sqrt(1 / (2 * balance["rho_left"]))
    assert least <= sigma <= 1.001 * least
    assert 1.96 * least <= error <= 1.96 * 1.001 * least
    assert ">secret-1<" in page
    assert "it was over the limit at no time" in page


def test_releases_of_others_are_not_named(server: Served) -> None:
    page = server.page("ann", f"/rules/{quote(GLOBAL)}").text
    assert ">r-1</a>" in page
    assert "secret-1" not in page
    assert "(another data set)" in page


def test_a_rule_about_each_release_has_no_balance(server: Served) -> None:
    page = server.page("ann", "/rules/cap").text
    assert "It checks each release alone" in page
    assert "What is left" not in page
    assert server.page("ann", "/rules/nothing").status_code == 404


def test_a_past_rule_has_spent_less(server: Served) -> None:
    path = f"/rules/{quote(GLOBAL)}"
    before = server.page("amir", path, params={"as_of": 1}).text
    assert "No release is charged to this rule." in before
    assert "?as_of=1" in before
    assert "No release is charged" not in server.page("amir", path).text


def test_the_drawing_has_a_node_and_a_row_for_each_rule(server: Served) -> None:
    page = server.page("ann", "/rule-drawing").text
    every = rows(server.page("ann", "/rules").text)
    assert page.count("<svg") == 1
    for one in every:
        assert f'<th scope="row">{one}</th>' in page
    assert f'href="/rules/{quote(GLOBAL, safe="")}"' in page
    assert "redundant by" in page


def test_the_drawing_near_one_rule_has_fewer(server: Served) -> None:
    query = {"rule": "attr:age @standard", "steps": 1}
    page = server.page("ann", "/rule-drawing", params=query).text
    assert '<th scope="row">attr:age @standard</th>' in page
    assert '<th scope="row">cat:health/member @standard</th>' not in page
    missing = server.page("ann", "/rule-drawing", params={"rule": HOSTILE})
    assert missing.status_code == 200
    assert "has no rule" in missing.text
    assert HOSTILE not in missing.text


def test_a_drawing_of_too_many_rules_says_so(tmp_path: Path) -> None:
    more = "".join(f"    a{n}: [low, {{}}]\n" for n in range(260))
    text = POLICY.replace("    steps:", f"{more}    steps:")
    with served(tmp_path / "ledger.db", policy=compiled(text), console=True) as server:
        page = server.page("ann", "/rule-drawing").text
        assert "is not readable" in page
        assert "<svg" not in page
        near = {"rule": "attr:a7 @standard"}
        assert "<svg" in server.page("ann", "/rule-drawing", params=near).text
        wide = {"rule": "global @black-box"}  # Everything is below it.
        crowded = server.page("ann", "/rule-drawing", params=wide).text
        assert "is not readable" in crowded
        first = server.page("ann", "/rules").text
        assert len(rows(first)) == 100
        onward = re.search(r'rel="next" href="([^"]+)"', first)
        assert onward
        second = rows(server.page("ann", onward[1].replace("&amp;", "&")).text)
        assert not {*second} & {*rows(first)}

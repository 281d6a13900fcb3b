"""Pages of the policy: its text, proposals under four eyes, and the editor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.served import Served, served
from samples.small import POLICY, compiled, counts

FOUR_EYES = (
    POLICY
    + """\
roles: {privacy-officer: [olga, pavel]}
activation: {need: 1, from: [privacy-officer]}
"""
)
#: A name that must never become markup.
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "ledger.db", policy=compiled(POLICY), console=True) as found:
        yield found


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Served]:
    with served(
        tmp_path / "ledger.db", policy=compiled(FOUR_EYES), console=True
    ) as found:
        yield found


def tag(server: Served) -> str:
    return str(server.get("olga", "/policies").headers["etag"])


def active(server: Served) -> str:
    return str(server.get("olga", "/policies/active").json()["text"])


def looser(text: str) -> str:
    assert "budget: 2.0" in text
    return text.replace("budget: 2.0", "budget: 3.0", 1)


def tighter(text: str) -> str:
    assert "budget: 2.0" in text
    return text.replace("budget: 2.0", "budget: 0.001", 1)


def proposed(server: Served, text: str) -> str:
    """Return the page of a proposal by a data steward."""
    sent = server.fill("dara", "/policy/edit/propose", text=text, reason=HOSTILE)
    assert sent.status_code == 303, sent.text
    return str(sent.headers["location"]).partition("?")[0]


def test_each_line_of_the_text_has_an_address(server: Served) -> None:
    page = server.page("amir", "/policy").text
    lines = active(server).split("\n")
    assert re.search(r'<tr id="L2">.*modicum: policy/v1', page)
    assert f'id="L{len(lines) - 1}"' in page
    assert f'id="L{len(lines)}"' not in page


def test_a_long_text_is_shown_around_a_line(server: Served) -> None:
    text = looser(active(server)) + "# filler\n" * 1200 + "# " + "x" * 5000 + "\n"
    sent = server.fill(
        "olga", "/policy/edit/activate", text=text, reason="x", tag=tag(server)
    )
    assert sent.status_code == 303
    last = len(text.rstrip("\n").split("\n"))
    page = server.page("olga", "/policy", params={"line": last}).text
    assert f'id="L{last}"' in page
    assert 'id="L1"' not in page
    assert "more characters" in page
    assert len(page) < 300_000
    assert 'id="L1"' in server.page("olga", "/policy", params={"line": "-x"}).text


def test_activations_are_listed_with_who_and_why(server: Served) -> None:
    first = server.get("olga", "/policies/active").json()["digest"]
    sent = server.fill(
        *("olga", "/policy/edit/activate"),
        text=looser(active(server)),
        reason=HOSTILE,
        tag=tag(server),
    )
    assert sent.headers["location"] == "/policy"
    page = server.page("olga", "/policy").text
    assert "The policy is active now." in page
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "<td>olga</td>" in page
    assert "<td>olga</td>" not in server.page("amir", "/policy").text
    assert "no longer active" in server.page("amir", f"/policy/{first}").text
    past = server.page("olga", "/policy", params={"as_of": 1}).text
    assert first[:12] in past
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") not in past
    assert "Edit a copy" not in past


def test_a_proposal_is_reviewed_approved_and_activated(guarded: Served) -> None:
    path = proposed(guarded, looser(active(guarded)))
    assert path in guarded.page("pavel", "/policy").text
    fresh = guarded.page("pavel", path).text
    assert HOSTILE not in fresh
    assert "Compare with the active policy" in fresh
    assert "Approvals are missing." in fresh
    reviewed = guarded.fill("pavel", path, review="1").text
    assert "It loosens" in reviewed
    assert "Past releases exceed no rule" in reviewed
    early = guarded.fill("pavel", f"{path}/activate", reason="x", tag=tag(guarded))
    assert early.status_code == 403
    vote = {"vote": "approve", "reason": "fine"}
    assert guarded.fill("olga", f"{path}/vote", **vote).status_code == 303
    assert "All approvals are given" in guarded.page("pavel", path).text
    assert guarded.fill("olga", f"{path}/take-back").status_code == 303
    assert "All approvals are given" not in guarded.page("pavel", path).text
    assert guarded.fill("olga", f"{path}/vote", **vote).status_code == 303
    stale = guarded.fill(
        *("pavel", f"{path}/activate"),
        reason="my reason",
        review="1",
        tag=f'"{"0" * 64}"',
    )
    assert stale.status_code == 412
    assert "my reason" in stale.text  # What was typed is kept,
    assert "It loosens" in stale.text  # and reviewed again.
    done = guarded.fill("pavel", f"{path}/activate", reason="x", tag=tag(guarded))
    assert done.headers["location"] == "/policy"
    assert active(guarded) == looser(FOUR_EYES)


def test_who_proposed_does_not_approve(guarded: Served) -> None:
    sent = guarded.fill(
        "olga", "/policy/edit/propose", text=looser(active(guarded)), reason="x"
    )
    path = str(sent.headers["location"]).partition("?")[0]
    page = guarded.page("olga", path).text
    assert "You made the request: others must approve it." in page
    refused = guarded.fill("olga", f"{path}/vote", vote="approve", reason="x")
    assert refused.status_code >= 400
    assert 'id="problem"' in refused.text


def test_an_exceeded_rule_is_accepted_by_its_checkbox(server: Served) -> None:
    text = active(server)
    assert server.post("amir", "/releases", counts("r-1")).status_code == 200
    strict = tighter(text)
    shown = server.fill("olga", "/policy/edit", show="impact", text=strict).text
    rules = re.findall(r'name="accept" form="editor" value="([^"]+)"', shown)
    assert rules
    assert "r-1" in shown
    sent = {"text": strict, "reason": "x", "show": "impact"}
    refused = server.fill("olga", "/policy/edit/activate", **sent, tag=tag(server))
    assert refused.status_code == 422
    assert "budget: 0.001" in refused.text
    assert active(server) == text
    sent["accept"] = "\n".join(rules)
    done = server.fill("olga", "/policy/edit/activate", **sent, tag=tag(server))
    assert done.status_code == 303, done.text
    assert server.get("olga", "/policies").json()["policies"][-1]["accepted"] == rules
    assert rules[0] in server.page("amir", "/policy").text


def test_the_reader_of_one_data_set_sees_no_history(server: Served) -> None:
    server.post("amir", "/releases", counts("secret-1", dataset="labs"))
    strict = tighter(active(server))
    compared = server.fill("ann", "/policy/edit", show="compare", text=strict).text
    assert "tighter" in compared
    weighed = server.fill("ann", "/policy/edit", show="impact", text=strict).text
    assert "who may read all releases" in weighed
    assert "secret-1" not in compared + weighed
    known = server.fill("olga", "/policy/edit", show="impact", text=strict).text
    assert "secret-1" in known


@pytest.mark.parametrize("show", ["check", "compare", "impact"])
def test_mistakes_are_shown_with_lines_and_the_text_is_kept(
    server: Served, show: str
) -> None:
    wrong = active(server) + f'unitz: "{HOSTILE}"\n'
    shown = server.fill("amir", "/policy/edit", show=show, text=wrong)
    line = len(wrong.rstrip("\n").split("\n"))
    assert shown.status_code == 200
    assert f'data-line="{line}"' in shown.text
    assert "did you mean" in shown.text
    assert HOSTILE not in shown.text
    assert "unitz: &#34;&lt;script&gt;" in shown.text


def test_the_editor_begins_with_the_policy_that_is_named(server: Served) -> None:
    old = server.get("olga", "/policies/active").json()["digest"]
    text = looser(active(server))
    server.fill("olga", "/policy/edit/activate", text=text, reason="x", tag=tag(server))
    area = re.compile(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', re.S)
    fresh = area.search(server.page("olga", "/policy/edit").text)
    copied = area.search(server.page("olga", f"/policy/edit?start={old}").text)
    assert fresh is not None
    assert copied is not None
    assert "budget: 3.0" in fresh[1]
    assert "budget: 3.0" not in copied[1]


def test_a_text_that_is_too_long_is_kept_and_said_so(server: Served) -> None:
    long = active(server) + "#" * 2**16 + "\n"
    shown = server.fill("olga", "/policy/edit", show="check", text=long)
    assert "longer than 64 KiB" in shown.text
    assert "MOD005" in shown.text


def test_a_simulation_becomes_a_job(server: Served) -> None:
    sent = server.fill("olga", "/policy/edit/simulate", text=looser(active(server)))
    assert sent.status_code == 303
    job = sent.headers["location"].removeprefix("/jobs/")
    assert server.get("olga", f"/jobs/{job}").json()["kind"] == "simulate-policy"
    wrong = server.fill("olga", "/policy/edit/simulate", text="name: x")
    assert wrong.status_code == 422
    assert "name: x" in wrong.text

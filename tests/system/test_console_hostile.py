"""What people write is shown as text: it is no markup, no script and no address."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from playwright.sync_api import Browser, Dialog
from samples.browser import PATIENCE_MS, Visit
from samples.escrows import POLICY, ROWS, TABLES, MemoryEquipment, query
from samples.jobs import finished
from samples.served import HEADER, PEOPLE, Served, served
from samples.small import counts

from modicum.api.local.escrow.execution import Tools
from modicum.integrations.loader import Adapters
from modicum.policy.compiler import compile_text
from modicum.reports.markup import visible
from modicum.server.rate_limits import Rates
from modicum.server.resources import Equipment

#: What a script does that runs although it should not.
_RUN: Final = "window.__xss=1"
_ELEMENTS: Final = (
    "<script>RUN</script>",
    "<img src=x onerror=RUN>",
    "<svg/onload=RUN>",
    "<svg><script>RUN</script></svg>",
    "<iframe srcdoc='<script>RUN</script>'></iframe>",
    "<body onload=RUN>",
    "<meta http-equiv=refresh content='0;url=//elsewhere.example'>",
    "<base href=//elsewhere.example>",
    "<link rel=stylesheet href=//elsewhere.example/a.css>",
    "<style>*{display:none}</style>",
    "<form action=//elsewhere.example><button>",
    "<input autofocus onfocus=RUN>",
    "<details open ontoggle=RUN>",
    "<object data=//elsewhere.example>",
    "<a href=javascript:RUN>",
    "<div hx-get=/logout hx-trigger=load>",
    "<b data-job=//elsewhere.example>",
    "<math><mi xlink:href=javascript:RUN>",
    "<h1>",
    "<template><b>",
    "<a href=//elsewhere.example id=problem>",
    "<button formaction=//elsewhere.example>",
    "<!--",
)
#: What ends the place that a text is in.
_EXITS: Final = ("", '">', "'>", "</td></table>", "</textarea>", "</pre></script>")
_OTHERS: Final = (
    *('" onfocus="RUN" autofocus="', "' onmouseover='RUN' x='", "` onclick=`RUN"),
    *('" hx-get="/logout" hx-trigger="load', "' hx-on:load='RUN", "\" style='x:y"),
    *("javascript:RUN", "JaVaScRiPt:RUN", "data:text/html,<script>RUN</script>"),
    *("//elsewhere.example/a", "https://elsewhere.example/", "/\\elsewhere.example"),
    *("{{7*7}}", "{% include 'base.html' %}", "{{ config }}", "${7*7}", "#{7*7}"),
    *("{{ ''.__class__ }}", "{# a #}", "<%= 7*7 %>", "%s%n%x", "{0.__class__}"),
    *("]]>", "<![CDATA[x]]>", "-->", "&lt;b&gt;", "&#60;b&#62;", "&amp;amp;", "&"),
    *("}{ color: red }", "expression(RUN)", "url(//elsewhere.example)", "\\3c b"),
    *("'; DROP TABLE entries; --", '{"a": 1}', "[1](javascript:RUN)", "=1+1"),
    *("\N{GRINNING FACE}" * 9, "שלום עולם", "مرحبا", "e" + "\u0301" * 20, "ß" * 30),
    *("long " * 50, "x" * 250, "../../etc/passwd", "%2e%2e%2f", "%3Cb%3E", "+1"),
)
#: What cannot be seen; most texts may not hold it, but drafts and addresses do.
_UNSEEN: Final = (
    *("a\u202etxt.exe", "a\u2066b", "a\u200bb", "a\u200db", "\ufeffa", "a\u00adb"),
    *("a\x00b", "a\x1b[31mb", "a\x07b", "a\x7fb", "a\x85b", "a\u2028b", "a\tb"),
    *("a\r\nSet-Cookie: b=1", "a\rb", "a\n\n<b>", "\U000e0041a", "a\ufffeb"),
)
SEEN: Final = tuple(
    one.replace("RUN", _RUN)
    for one in (*(end + one for one in _ELEMENTS for end in _EXITS), *_OTHERS)
)
WHO: Final = "olga"
REQUESTER: Final = "press"
ASKING: Final = """
roles: {privacy-officer: [olga, pavel]}
approvals:
  - {when: 'release.requester == "press"', need: 2, from: [privacy-officer]}
activation: {need: 2, from: [privacy-officer]}
"""
#: Most letters of a text for the record.
_MOST: Final = 1_900
_NAMES: Final = ("href", "src", "action", "formaction", "data", "content", "hx-get")
_LEADS: Final = ("/", "#", "?", "data:application/yaml;base64,", "mailto:")


def test_there_are_enough_of_them() -> None:
    assert len({*SEEN, *_UNSEEN}) >= 200


def harmless(texts: Sequence[str]) -> list[str]:
    """Return as many texts of letters, as long as the others."""
    return [f"text {n} ".ljust(min(len(one), 40), "x") for n, one in enumerate(texts)]


def chunks(texts: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """Yield some texts after the other, each time with them joined to one; endless."""
    groups: list[list[str]] = [[]]
    for one in texts:
        if len(" ".join([*groups[-1], one]).encode()) > _MOST:
            groups.append([])
        groups[-1].append(one)
    yield from cycle((one, " ".join(one)) for one in groups)


@dataclass
class Opened:
    """A page, and which texts it must show.

    Attributes:
        path: Its address, or that of its form.
        texts: The texts.
        who: Who opens it.
        fields: The fields of its form; None if it is read.
    """

    path: str
    texts: Sequence[str] = ()
    who: str = WHO
    fields: Mapping[str, str] | None = None


@dataclass
class Seen(HTMLParser):
    """What a browser would make of a page."""

    shapes: set[tuple[str, str]] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.shapes.add((tag, ""))
        for name, value in attrs:
            self.shapes.add((tag, name))
            self.texts.append(value or "")
            if name in _NAMES and (tag, name) != ("meta", "content"):
                self.addresses.append(value or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.shapes.add(("a comment", data))


def sent(server: Served, who: str, path: str, document: Any, **named: Any) -> Any:
    """Have an operation done."""
    answer = server.post(who, path, document, **named)
    assert answer.status_code < 300, answer.text
    return answer.json()


def written(server: Served, texts: Sequence[str]) -> list[Opened]:
    """Write texts wherever people may; return the pages that show them."""
    parts = chunks(texts)
    found = [Opened("/policy", texts)]
    for number in range(6):
        (purpose, one), (dataset, two), (by, three) = islice(parts, 3)
        more = {"purpose": one, "dataset": two, "requester": three}
        body = counts(f"r-{number}", attributes=("town",), **more)
        sent(server, "amir", "/releases", body)
        found.append(Opened(f"/releases/r-{number}", [*purpose, *dataset, *by]))
    why, reason = next(parts)
    sent(server, "amir", "/releases/r-0:void", {"reason": reason})
    found.append(Opened("/releases/r-0", why))
    found += _requests(server, parts)
    for _ in range(5):
        sent(server, "dara", "/ledger/remarks", {"remark": next(parts)[1]})
    sent(
        server,
        "dara",
        "/ledger/disclosures",
        {"disclosure": "d", "what": next(parts)[1], "attributes": ["town"]}
        | {"reason": next(parts)[1]},
    )
    for one in texts[::9]:
        body = {"name": one[:100].strip(), "expires_in_days": 3}
        sent(server, "amir", "/tokens", body)
    shown = [one[:100] for one in texts[::9]]
    found.append(Opened("/settings", shown, "amir"))
    found += _contracts(server, parts)
    last = server.get(WHO, "/ledger/head").json()["seq"]
    found += [Opened(f"/ledger/{seq}") for seq in range(1, last + 1)]
    paths = ("/", "/releases", "/rules", "/ledger", "/ledger?as_of=9", "/escrow")
    return [*found, *(Opened(one) for one in paths)]


def _requests(server: Served, parts: Iterator[tuple[list[str], str]]) -> list[Opened]:
    found, every = [], []
    for number in range(3):
        (purpose, one), (why, reason) = islice(parts, 2)
        name = f"q-{number}"
        body = counts(name, attributes=("town",), purpose=one, requester=REQUESTER)
        path = f"/requests?{urlencode({'reason': reason})}"
        sent(server, "amir", path, body)
        texts = [*why]
        tag = server.get(WHO, f"/requests/{name}").headers["etag"]
        for who, approves in (("olga", True), ("pavel", False)):
            read, reason = next(parts)
            vote = {"approves": approves, "reason": reason}
            headers = {"If-Match": tag}
            sent(server, who, f"/requests/{name}/approvals", vote, headers=headers)
            texts += read
        found.append(Opened(f"/requests/{name}", texts))
        every += why
        assert purpose
    sent(server, "amir", "/requests/q-2:withdraw", {"reason": next(parts)[1]})
    found.pop()
    return [*found, Opened("/requests")]


def _contracts(server: Served, parts: Iterator[tuple[list[str], str]]) -> list[Opened]:
    base = "/escrow/contracts"

    def proposed(**fields: str) -> list[str]:
        why, reason = next(parts)
        fields |= {"reason": reason, "days": "30"}
        answer = server.fill("amir", "/escrow/propose", **fields)
        assert answer.status_code == 303, answer.text
        return why

    why = proposed(flow="query", contract="c", query=query("c-r"))
    votes, reason = next(parts)
    tag = server.get("dara", f"{base}/c").headers["etag"]
    vote = {"approves": True, "reason": reason}
    sent(server, "dara", f"{base}/c/approvals", vote, headers={"If-Match": tag})
    begun = server.post("amir", f"{base}/c:run")
    assert finished(server, "amir", begun)["state"] == "done"
    code, lines = next(parts)
    program = f"code: |\n  # {lines}\n  def score(tables, arguments, reference):\n"
    program += "      return 0.5\nrange: [0, 1]\n"
    reasons = proposed(flow="task", contract="t", of="c", program=program, seconds="9")
    return [
        Opened(f"{base}/c", [*why, *votes], "dara"),
        Opened(f"{base}/t", [*reasons, *code], "dara"),
        Opened("/escrow/data/people", (), "dara"),
    ]


def asked(texts: Sequence[str]) -> list[Opened]:
    """Return pages at addresses, and answers to forms, that hold texts."""
    parts = chunks(texts)
    found = []
    for path, names in (
        ("/", ("unit",)),
        ("/releases", ("search", "status", "done")),
        ("/rules", ("search", "scope", "unit", "context", "binding", "order")),
        ("/rule-drawing", ("rule", "unit", "steps")),
        ("/ledger", ("actor", "kind")),
        ("/ledger/remark", ("about",)),
        ("/risk", ("tau", "query", "dataset", "unit", "job")),
        ("/escrow", ("text", "flow")),
        ("/escrow/propose", ("of", "flow")),
        ("/policy/edit", ("start",)),
        ("/policy", ("line",)),
        *((one, ("as_of",)) for one in ("/", "/releases", "/ledger", "/policy")),
        *((one, ("cursor",)) for one in ("/releases", "/rules", "/ledger")),
    ):
        for name in names:
            found.append(Opened(f"{path}?{urlencode({name: next(parts)[1]})}"))
    found.append(Opened("//elsewhere.example/a?as_of=3"))
    for path in ("/releases/", "/requests/", "/rules/", "/rounds/", "/jobs/", "/x/"):
        found += [Opened(path + quote(one, safe="")) for one in texts[:: len(path)]]
    return found


def answered(texts: Sequence[str]) -> list[Opened]:
    """Return forms that come back with the texts that were sent."""
    parts, found = chunks(texts), []

    def form(who: str, path: str, *names: str, **fields: str) -> None:
        shown: list[str] = []
        for name in names:
            some, fields[name] = next(parts)
            shown += some
        found.append(Opened(path, shown, who, fields))

    for _ in range(5):
        form("amir", "/new-release", "text", way="yaml", do="check")
    form("amir", "/new-release", "query", "tables", way="sql", do="check")
    names = ("id", "purpose", "requester", "dataset", "periods", "parameter.sigma")
    form("amir", "/new-release", *names, way="form", do="check")
    for show in ("check", "compare", "impact"):
        form(WHO, "/policy/edit", "text", "reason", show=show)
    form(WHO, "/risk/profile", "profile", "sensitivity", "epsilons", "delta")
    form("dara", "/ledger/remark", "about", "remark")
    form("dara", "/ledger/disclosure", "disclosure")
    form(WHO, "/rounds/open", "round", "unlocked")
    form(WHO, "/audit/receipt", "release")
    form("amir", "/escrow/propose", "contract", "query", "analyst", flow="query")
    form("amir", "/settings/tokens", "name", "grant-analyst", days="0")
    return found


@contextmanager
def organization(folder: Path, texts: Sequence[str]) -> Iterator[Served]:
    """Serve a ledger whose policy has texts as its remarks."""
    folder.mkdir()
    remarks = "".join(f"# {one}\n" for one in texts)
    policy = compile_text(f"{POLICY}{ASKING}{remarks}".encode(), "policy.yaml")
    own = Equipment(escrow=Tools(MemoryEquipment(), Adapters()))
    rates = Rates(1_000_000)
    with served(
        folder / "l.db",
        policy=policy,
        people=PEOPLE,
        own=own,
        console=True,
        rates=rates,
    ) as server:
        rows = base64.b64encode(ROWS).decode()
        owned = {"owners": {"dara": []}, "quorum": 1, "contracts": 20}
        sent(
            server,
            "dara",
            "/escrow/data/people/versions",
            {"table": TABLES, "rows": rows, **owned},
        )
        yield server


def read(server: Served, one: Opened) -> tuple[Seen, int]:
    """Open a page without a browser."""
    if one.fields is None:
        asks = {HEADER: one.who, "Accept": "text/html"}
        answer = server.client.get(one.path, headers=asks)
    else:
        answer = server.fill(one.who, one.path, **one.fields)
    seen = Seen()
    seen.feed(answer.text)
    seen.close()
    # What a field gives back is what was written; all else can be seen.
    text = re.sub(r'value="[^"]*"|<textarea[^>]*>[^<]*</textarea>', "", answer.text)
    unseen = {each for each in text if not (each.isprintable() or each == "\n")}
    assert unseen == set(), (one.path, unseen)
    return seen, answer.status_code


def check(one: Opened, seen: Seen, other: Seen) -> None:
    """Compare a page with the same one that has harmless texts."""
    assert seen.shapes - other.shapes == set(), one.path
    leads = [each for each in seen.addresses if not each.startswith(_LEADS)]
    assert leads == [], one.path
    assert [each for each in seen.addresses if each.startswith(("//", "/\\"))] == []
    whole = visible("\n".join(seen.texts).replace("\r\n", "\n"))
    lost = [each for each in one.texts if _kept(each) not in whole]
    assert lost == [], (one.path, lost[:3])


def _kept(text: str) -> str:
    """Return a text as a page shows it; forms have one kind of line ends."""
    return visible(text.strip().replace("\r\n", "\n"))


def test_texts_are_shown_as_texts(tmp_path: Path, chromium: Browser) -> None:
    every = [*SEEN, *_UNSEEN]
    with (
        organization(tmp_path / "hostile", SEEN) as server,
        organization(tmp_path / "harmless", harmless(SEEN)) as twin,
    ):
        pages = [*written(server, SEEN), *asked(every), *answered(every)]
        plain = harmless(every)
        twins = [*written(twin, harmless(SEEN)), *asked(plain), *answered(plain)]
        assert len(pages) == len(twins)
        for one, other in zip(pages, twins, strict=True):
            (seen, status), (like, _) = read(server, one), read(twin, other)
            assert status < 500, one.path
            check(one, seen, like)
        full = [one for one in pages if one.texts or one.fields or "?" in one.path]
        rest = [one for one in pages if one not in full]
        for who in sorted({one.who for one in pages}):
            some = [one for one in (*full, *rest[::5]) if one.who == who]
            in_browser(server, chromium, who, some)


def in_browser(
    server: Served, browser: Browser, who: str, pages: Sequence[Opened]
) -> None:
    """Open pages in a browser: no text runs, or is followed anywhere."""
    with browser.new_context(
        base_url=server.url, extra_http_headers={HEADER: who}
    ) as context:
        context.set_default_timeout(PATIENCE_MS)
        visit = Visit(who, context.new_page(), server.url)

        def hear(dialog: Dialog) -> None:
            visit.noticed.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

        visit.page.on("dialog", hear)
        for one in pages:
            _open(visit, server.url, one)
            assert visit.page.evaluate("window.__xss") is None, one.path
        # Addresses without a page, and texts in fields for numbers, are meant.
        meant = ("status of 4", "The specified value")
        left = [one for one in visit.noticed if not any(it in one for it in meant)]
        assert left == []


def _open(visit: Visit, url: str, one: Opened) -> None:
    if one.fields is None:
        visit.page.goto(url + one.path)
        return
    with visit.page.expect_navigation():
        visit.page.evaluate(_SEND, [one.path, json.loads(json.dumps(one.fields))])


_SEND: Final = """([path, fields]) => {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: path });
  for (const [name, value] of Object.entries({ ...fields, key: crypto.randomUUID() })) {
    const area = document.createElement("textarea");
    Object.assign(area, { name, value });
    form.append(area);
  }
  document.body.append(form);
  HTMLFormElement.prototype.submit.call(form);
}"""

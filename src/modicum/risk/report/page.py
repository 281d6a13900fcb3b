"""A study as one HTML page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from modicum.core.rationals import brief
from modicum.reports.charts.canvas import drawn
from modicum.reports.markup import Child, Markup, element, joined, table
from modicum.risk.charts.groups import GROUPS_MAX, risk_groups
from modicum.risk.charts.histogram import risk_histogram
from modicum.risk.charts.ranges import risk_ranges
from modicum.risk.claims import Claim
from modicum.risk.report import words
from modicum.risk.report.style import RISK_STYLE
from modicum.risk.study.study import Study
from modicum.risk.study.tables import (
    Table,
    groups_table,
    histogram_table,
    ranges_table,
    units_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def risk_report(study: Study) -> str:
    """Return a study as a whole HTML document.

    Args:
        study: What it says.

    Raises:
        InputError: If matplotlib is not installed.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", "Disclosure risk of a question"),
        element("style", Markup(RISK_STYLE)),
    )
    main = element("main", element("h1", "Disclosure risk of a question"), *_all(study))
    sheet = [*_banner(study, "first"), main, *_banner(study, "last")]
    body = element("body", element("div", *sheet, class_="sheet"))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _banner(study: Study, place: str) -> Iterator[Markup]:
    if study.notice is not None:
        said = element("p", study.notice)
        yield element("div", said, class_=f"{place} banner", role="note")


def _all(study: Study) -> Iterator[Markup]:
    yield _section("question", "The question", _question(study))
    yield _section("choice", "The choice", _choice(study))
    yield _section("charge", "What must be charged", _charge(study))
    yield _section("ranges", "People at each epsilon", _ranges(study))
    if study.groups:
        yield _section("groups", "Groups of people", _groups(study))
    if study.seen is not None and study.seen.histograms:
        yield _section("histograms", "How many people", _histograms(study))
    yield _section("units", "The same in units", _units(study))


def _question(study: Study) -> Iterator[Markup]:
    asked = study.asked
    yield element("pre", element("code", asked.question))
    form = {"published": "the published upper bound", "exact": "the exact expectation"}
    facts: list[tuple[str, Child]] = [
        ("One person", asked.person),
        ("Counted in", asked.unit),
        ("Noise", words.noise_words(asked.noise)),
        ("Form of the indicator", form[asked.form]),
    ]
    if study.seen is not None:
        facts.append(("People in the table", f"{study.seen.people:,}"))
    yield _definitions(facts)


def _choice(study: Study) -> Iterator[Markup]:
    choice = study.choice
    chosen = choice.epsilon
    told = "No epsilon was chosen" if chosen is None else f"Epsilon {brief(chosen)}"
    yield element("p", told, class_="chosen")
    yield element("p", f"{choice.why[:1].upper()}{choice.why[1:]}.")
    promise = element("p", words.CLAIMS[choice.claim])
    boxed = choice.claim is not Claim.DP
    yield element("div", promise, class_="box", role="note") if boxed else promise
    facts: list[tuple[str, Child]] = [
        ("Claim", element("code", choice.claim.value)),
        ("Method", element("code", choice.method)),
    ]
    if choice.uncapped is not None:
        facts.append(("The greatest of all that would pass", brief(choice.uncapped)))
    yield _definitions(facts)
    found = list(words.caveats(study))
    if found:
        yield element("h3", "What else must be known")
        yield element("ul", *(element("li", one) for one in found))


def _charge(study: Study) -> Iterator[Markup]:
    lines = words.charged(study.choice)
    if lines:
        yield _definitions([(what, element("code", how)) for what, how in lines])
    else:
        yield element("p", words.NOT_CHARGED[study.choice.claim])


def _ranges(study: Study) -> Iterator[Markup]:
    yield element("p", words.INDICATOR)
    if study.seen is None:
        yield element("p", words.ANY_TABLE)
    yield element("p", words.ERROR)
    yield from _picture(risk_ranges(study), ranges_table(study))


def _groups(study: Study) -> Iterator[Markup]:
    yield element("p", words.GROUPS)
    if len(study.groups) <= GROUPS_MAX:
        yield from _picture(risk_groups(study), groups_table(study))
    else:
        yield element("p", f"More than {GROUPS_MAX} groups have a table only.")
        yield _numbers(groups_table(study))


def _histograms(study: Study) -> Iterator[Markup]:
    yield element("p", words.HISTOGRAM)
    for one in study.seen.histograms if study.seen else ():
        yield from _picture(risk_histogram(study, one), histogram_table(study, one))


def _units(study: Study) -> Iterator[Markup]:
    if study.seen is not None:
        yield element("p", words.OWN_LOSS.format(loss=study.asked.loss_name))
    yield _numbers(units_table(study))


def _picture(figure: Figure, numbers: Table) -> Iterator[Markup]:
    """Yield a picture, and the table of its numbers."""
    contents = b64encode(drawn(figure, ".svg")).decode("ascii")
    source = f"data:image/svg+xml;base64,{contents}"
    image = element("img", src=source, alt=str(figure.get_label()))
    yield element("figure", image)
    yield _numbers(numbers)


def _numbers(numbers: Table) -> Markup:
    return element(
        "div",
        table(numbers.caption, numbers.titles, numbers.rows),
        class_="numbers",
        role="region",
        aria_label=numbers.caption,
        tabindex="0",
    )


def _section(name: str, title: str, contents: Iterable[Markup]) -> Markup:
    return element(
        "section", element("h2", title, id=name), *contents, aria_labelledby=name
    )


def _definitions(pairs: Iterable[tuple[str, Child]]) -> Markup:
    return element(
        "dl",
        *(
            joined((element("dt", term), element("dd", meaning)))
            for term, meaning in pairs
        ),
    )

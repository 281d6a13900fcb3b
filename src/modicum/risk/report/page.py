"""A study as one HTML page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from modicum.core.rationals import brief
from modicum.reports.charts.chart import Chart, Numbers
from modicum.reports.markup import Child, Markup, element, joined, table
from modicum.reports.style import STYLE
from modicum.risk.charts.groups import GROUPS_MAX, risk_groups
from modicum.risk.charts.histogram import risk_histogram
from modicum.risk.charts.ranges import risk_ranges
from modicum.risk.choice import Choice, Claim
from modicum.risk.noise import GaussianNoise, Noise
from modicum.risk.study.study import Study
from modicum.risk.study.tables import Table, groups_table, units_table

RISK_STYLE = (
    STYLE
    + """
.banner { border: 2px solid var(--over); color: var(--over); font-weight: 700;
  padding: 0 1rem; text-align: center; }
.banner p { margin: 0.4rem 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere;
  border-left: 4px solid var(--line);
  padding: 0.2rem 1rem; margin: 1rem 0; }
.numbers { overflow-x: auto; }
.numbers td, .numbers th { overflow-wrap: break-word; text-align: right;
  font-variant-numeric: tabular-nums; }
.numbers th:first-child { text-align: left; }
caption { break-after: avoid; }
.chosen { font-size: 1.2rem; font-weight: 700; }
@media print { .sheet { display: table; width: 100%; }
  .sheet > main { display: table-row-group; }
  .first.banner { display: table-header-group; border: 0; }
  .last.banner { display: table-footer-group; border: 0; }
  figure { break-inside: avoid; }
  .numbers { overflow-x: visible; } .numbers table { font-size: 8pt; }
  .numbers td, .numbers th { padding-top: 0.1rem; padding-bottom: 0.1rem; } }
"""
)


#: The meaning of each claim for the user of a choice.
CLAIMS: Mapping[Claim, str] = MappingProxyType(
    {
        Claim.DP: (
            "The choice, or that there is none, may be disclosed. Together with a"
            " release at the chosen epsilon, its loss is at most what must be charged."
        ),
        Claim.ADVICE: (
            "This is advice for you, who can see the data. The epsilon follows from"
            " the rows without noise. A release at it is not differentially private,"
            " for any finite epsilon: the epsilon, or its absence, reveals something"
            " about the rows. For a release, use a choice that does not read rows, or"
            " one that is charged."
        ),
        Claim.EXPERIMENTAL: (
            "For study only. The algorithm was published as private, but its privacy is"
            " disproven or unproven. Do not release its choice as differentially"
            " private."
        ),
    }
)
NOT_CHARGED: Mapping[Claim, str] = MappingProxyType(
    {
        Claim.DP: "Nothing: no row was read, and nothing was chosen.",
        Claim.ADVICE: (
            "No charge is enough: the loss of a release at this epsilon has no"
            " known bound."
        ),
        Claim.EXPERIMENTAL: (
            "No charge is enough: the loss of this algorithm has no known bound."
        ),
    }
)
INDICATOR = (
    "The relative disclosure risk indicator (RDR) of a person is the expected"
    " distance of the noisy answer from the answer without their rows. Here it is"
    " divided by the largest RDR. A long bar means that a release treats people"
    " very differently: those at its top stand out most. A short bar means that people"
    " are alike, not that they are safe. Only epsilon bounds that."
)
OWN_LOSS = (
    "A person's own {loss} bounds what the release can reveal about them, with the"
    " rows of all others fixed. It exceeds that of the release for anyone who moves"
    " the answer by more than the assumed sensitivity."
)
ANY_TABLE = (
    "No row was read for these numbers: they range from no influence on the answer"
    " to the largest possible influence, and are valid for every table."
)
ERROR = (
    "The half width bounds the error from noise alone with 95 % probability, for"
    " each value of the answer separately."
)
HISTOGRAM = (
    "Counts are on a logarithmic scale, so that small groups are visible. Check the"
    " right end: a low number for most people does not protect the others."
)
GROUPS = (
    "Each group has its own bar, as a share of the largest RDR of all people. The ends"
    " of groups of very different size are hard to compare: a larger group has more"
    " people who may stand out."
)
PEOPLE_BESIDE = (
    "The choice may be released, but not the facts on this page about people in"
    " the table."
)


def noise_text(noise: Noise) -> str:
    """Return the noise of a release, as text."""
    many = noise.dimensions
    on = "the answer" if many == 1 else f"each of {many} numbers"
    sensitivity = brief(noise.sensitivity)
    if isinstance(noise, GaussianNoise):
        how = {
            "exact": "the smallest sufficient noise",
            "published": "by the classical formula",
        }[noise.calibration]
        return (
            f"Gaussian noise on {on}, {how} for epsilon and delta"
            f" {brief(noise.delta)}, given an L2 sensitivity of {sensitivity}"
        )
    return f"Laplace noise on {on}, of scale {sensitivity} divided by epsilon"


def caveats(study: Study) -> Iterator[str]:
    """Yield further conditions."""
    yield from study.choice.caveats
    if study.choice.claim is Claim.DP and study.seen is not None:
        yield PEOPLE_BESIDE


def charged(choice: Choice) -> list[tuple[str, str]]:
    """Return the charges, as purpose and mechanism."""
    if choice.charge is None:
        return []
    found = []
    if choice.charge.selection is not None:
        selection = choice.charge.selection
        text = f"{_mechanism(selection.described())} (epsilon {brief(selection.eps)})"
        found.append(("The choice itself, whatever its result", text))
    if choice.charge.release is not None:
        text = _mechanism(choice.charge.release)
        found.append(("A release at the chosen epsilon", text))
    return found


def _mechanism(described: Mapping[str, str]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in described.items())


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def risk_report(study: Study) -> str:
    """Return a study as a whole HTML document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", "Disclosure risk of a query"),
        element("style", Markup(RISK_STYLE)),
    )
    main = element("main", element("h1", "Disclosure risk of a query"), *_all(study))
    sheet = [*_banner(study, "first"), main, *_banner(study, "last")]
    body = element("body", element("div", *sheet, class_="sheet"))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _banner(study: Study, place: str) -> Iterator[Markup]:
    if study.notice is not None:
        notice = element("p", study.notice)
        yield element("div", notice, class_=f"{place} banner", role="note")


def _all(study: Study) -> Iterator[Markup]:
    yield _section("question", "The query", _question(study))
    yield _section("choice", "The choice", _choice(study))
    yield _section("charge", "What must be charged", _charge(study))
    yield _section("ranges", "People at each epsilon", _ranges(study))
    if study.groups:
        yield _section("groups", "Groups of people", _groups(study))
    if study.seen is not None and study.seen.histograms:
        yield _section("histograms", "How many people", _histograms(study))
    yield _section("units", "The same in units", _units(study))


def _question(study: Study) -> Iterator[Markup]:
    query = study.query
    yield element("pre", element("code", query.question))
    form = {"published": "the published upper bound", "exact": "the exact expectation"}
    facts: list[tuple[str, Child]] = [
        ("One person", query.person),
        ("Counted in", query.unit),
        ("Noise", noise_text(query.noise)),
        ("Form of the indicator", form[query.form]),
    ]
    if study.seen is not None:
        facts.append(("People in the table", f"{study.seen.people:,}"))
    yield _definitions(facts)


def _choice(study: Study) -> Iterator[Markup]:
    choice = study.choice
    chosen = choice.epsilon
    text = "No epsilon was chosen" if chosen is None else f"Epsilon {brief(chosen)}"
    yield element("p", text, class_="chosen")
    yield element("p", f"{choice.why[:1].upper()}{choice.why[1:]}.")
    promise = element("p", CLAIMS[choice.claim])
    boxed = choice.claim is not Claim.DP
    yield element("div", promise, class_="box", role="note") if boxed else promise
    facts: list[tuple[str, Child]] = [
        ("Claim", element("code", choice.claim.value)),
        ("Method", element("code", choice.method)),
    ]
    if choice.uncapped is not None:
        facts.append(
            ("The largest candidate that meets the target", brief(choice.uncapped))
        )
    yield _definitions(facts)
    found = list(caveats(study))
    if found:
        yield element("h3", "Notes")
        yield element("ul", *(element("li", one) for one in found))


def _charge(study: Study) -> Iterator[Markup]:
    lines = charged(study.choice)
    if lines:
        yield _definitions([(what, element("code", how)) for what, how in lines])
    else:
        yield element("p", NOT_CHARGED[study.choice.claim])


def _ranges(study: Study) -> Iterator[Markup]:
    yield element("p", INDICATOR)
    if study.seen is None:
        yield element("p", ANY_TABLE)
    yield element("p", ERROR)
    yield from _picture(risk_ranges(study))


def _groups(study: Study) -> Iterator[Markup]:
    yield element("p", GROUPS)
    if len(study.groups) <= GROUPS_MAX:
        yield from _picture(risk_groups(study))
    else:
        yield element("p", f"More than {GROUPS_MAX} groups are shown in a table only.")
        yield _numbers(groups_table(study))


def _histograms(study: Study) -> Iterator[Markup]:
    yield element("p", HISTOGRAM)
    for place, one in enumerate(study.seen.histograms if study.seen else (), 1):
        yield from _picture(risk_histogram(study, one, name=f"people-{place}"))


def _units(study: Study) -> Iterator[Markup]:
    if study.seen is not None:
        yield element("p", OWN_LOSS.format(loss=study.query.loss_name))
    yield _numbers(units_table(study))


def _picture(chart: Chart) -> Iterator[Markup]:
    """Yield a chart, and the table of its numbers."""
    yield element("figure", chart.svg)
    yield _region(chart.title, chart.table)


def _numbers(numbers: Table) -> Markup:
    return _region(numbers.caption, (numbers.titles, numbers.rows))


def _region(caption: str, numbers: Numbers) -> Markup:
    return element(
        "div",
        table(caption, *numbers),
        class_="numbers",
        role="region",
        aria_label=caption,
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

"""Why SQL is refused, and the remedy, by the word that causes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.query.expressions.table import BY_WORD

#: Longer words are cut in messages.
_SHOWN_MAX: Final = 40


class Reason(NamedTuple):
    """Why something is unsupported, and the remedy; either may be empty."""

    why: str = ""
    remedy: str = ""


def refused(
    code: Code, message: str, mark: Mark | None, *, label: str = "", reason: Reason
) -> InputError:
    """Return the error for a query that is refused, ready to be raised.

    Args:
        code: The code.
        message: The mistake.
        mark: The position.
        label: A short remark for the place.
        reason: The reason and the remedy.
    """
    notes = (reason.why,) if reason.why else ()
    return InputError(Problem(code, message, mark, label, notes, reason.remedy))


def not_read(
    word: str,
    mark: Mark | None,
    reason: Reason | None = None,
    *,
    label: str = "",
    here: bool = False,
) -> InputError:
    """Return the error for an unsupported word of SQL, ready to be raised.

    Args:
        word: The word, as written; empty for a value, which no message repeats.
        mark: The position.
        reason: The reason; by default what is known about the word.
        label: A short remark for the place.
        here: Whether it is allowed elsewhere.
    """
    found = reason if reason is not None else WORDS.get(word.upper(), Reason())
    shown = word if len(word) <= _SHOWN_MAX else word[:_SHOWN_MAX] + "…"
    wrong = "cannot stand here in" if here else "is not part of"
    message = (
        f"{f'`{shown}`' if word else 'a value'} {wrong} the SQL that modicum reads"
    )
    return refused(Code.NOT_IN_SUBSET, message, mark, label=label, reason=found)


_SORTED: Final = Reason("sort and cut the answer, at no cost", "leave it out")
_FILTERED: Final = Reason(
    "dropping groups by their exact value would reveal it",
    "leave it out, and drop groups of the answer: that costs nothing",
)
_ONE_QUERY: Final = Reason(
    "one query is one SELECT over declared tables", "write one query for each SELECT"
)
#: The message about a subquery.
INNER_QUERY: Final = Reason(
    "a subquery has rows of the tables, or one row for each id, after FROM or IN",
    "write FROM (SELECT id, COUNT(*) AS n FROM table GROUP BY id) AS t, or"
    " WHERE id IN (SELECT id FROM table)",
)
_WINDOWS: Final = Reason(
    "a value computed from other rows has no bound",
    "group instead, or compute it from the answer",
)
_INNER: Final = Reason(
    "each row of the first table is read once, with at most one other row",
    "write JOIN … USING (id), or LEFT JOIN with the other table first",
)
_PATTERN: Final = Reason(
    "patterns have % and _ only, which all engines read alike",
    "write column LIKE 'a%', or list the values: column IN ('a', 'b')",
)
_COMPUTED: Final = Reason(
    "engines compute it differently, or a row could make it fail",
    "compute it in the data, declare that column, and name it",
)
_LEAST: Final = Reason(
    "the minimum and the first value are those of a single row",
    "use a quantile: QUANTILE(column, 0.05)",
)
_GREATEST: Final = Reason(
    "the maximum and the last value are those of a single row",
    "use a quantile: QUANTILE(column, 0.95)",
)
_PARAMETER: Final = Reason(
    "the query must contain all values", "write the value itself"
)
_SAMPLED: Final = Reason(
    "a sample must be secret and accounted for", "use in the release: sampling: …"
)
_CLOCK: Final = Reason(
    "an answer must not depend on the time of computation", "write the date itself"
)
_JOINED: Final = Reason(
    "each row must belong to the person whose id it has", "write JOIN … USING (id)"
)
_NULL_TEST: Final = Reason("", "write IS NULL or IS NOT NULL")
_SUBQUERY: Final = Reason(
    "a condition looks at one row", "list the values: column IN (1, 2)"
)
_EVERYTHING: Final = Reason("", "leave it out, or name each key of GROUP BY")

#: Hints about unsupported words.
WORDS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(
        ("ORDER BY", "LIMIT", "OFFSET", "FETCH", "TOP", "SORT BY"), _SORTED
    ),
    **dict.fromkeys(("HAVING", "QUALIFY"), _FILTERED),
    **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT", "SELECT"), _ONE_QUERY),
    "WITH": INNER_QUERY,
    **dict.fromkeys(("OVER", "WINDOW", "PARTITION BY"), _WINDOWS),
    **dict.fromkeys(
        ("LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "ASOF", "POSITIONAL"), _INNER
    ),
    **dict.fromkeys(("CROSS", "NATURAL", "LATERAL"), _JOINED),
    **dict.fromkeys(
        (
            "GLOB",
            "SIMILAR TO",
            "RLIKE",
            "REGEXP",
            "~",
            "~~",
            "!~",
            "ESCAPE",
            "REGEXP_MATCHES",
            "REGEXP_LIKE",
        ),
        _PATTERN,
    ),
    **dict.fromkeys(("^", "**", "&", "|", "<<", ">>"), _COMPUTED),
    **dict.fromkeys(("MIN", "ARG_MIN", "FIRST"), _LEAST),
    **dict.fromkeys(("MAX", "ARG_MAX", "LAST"), _GREATEST),
    **dict.fromkeys(("?", "$", ":", "@", "#"), _PARAMETER),
    **dict.fromkeys(("TABLESAMPLE", "SAMPLE"), _SAMPLED),
    **dict.fromkeys(
        ("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "NOW", "TODAY"), _CLOCK
    ),
    **dict.fromkeys(("ISNULL", "NOTNULL"), _NULL_TEST),
    **dict.fromkeys(("EXISTS", "ANY", "SOME"), _SUBQUERY),
    "ALL": _EVERYTHING,
    "DISTINCT": Reason("groups use all their keys", "leave it out"),
    "PIVOT": Reason("", "group by the column"),
    "UNNEST": _COMPUTED,
    "XOR": Reason("", "write it with AND, OR and NOT"),
    "IN": Reason("", "list the values in brackets: column IN (1, 2)"),
    "GROUPING SETS": Reason("", "write one query for each set of keys"),
    "ROLLUP": Reason("", "write one query for each set of keys"),
    "CUBE": Reason("", "write one query for each set of keys"),
    "FILTER": Reason("conditions are in WHERE", "use another query for it"),
    "INTERVAL": Reason(
        "", "write the date itself, or count days: DATE_DIFF('day', begin, end)"
    ),
    "DATE_TRUNC": Reason(
        "", "write DATE_TRUNC('day', column): day, week, month, quarter or year"
    ),
    "COLLATE": Reason("text is compared exactly", "leave it out"),
    "QUANTILE_CONT": Reason("", "write QUANTILE(column, 0.5)"),
    "QUANTILE_DISC": Reason("", "write QUANTILE(column, 0.5)"),
    "PERCENTILE_CONT": Reason(
        "", "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY column)"
    ),
    **dict.fromkeys(
        ("ASC", "DESC", "NULLS"),
        Reason("quantiles are ordered by their values", "leave it out"),
    ),
    "MODE": Reason("", "count each value: SELECT column, COUNT(*) … GROUP BY column"),
    "PERCENTILE_DISC": Reason("", "write QUANTILE(column, 0.5)"),
    "APPROX_COUNT_DISTINCT": Reason("", "write COUNT(DISTINCT column)"),
    "<=>": Reason("", "write IS NOT DISTINCT FROM"),
    "[": Reason("", "write a series of comparisons"),
    ";": Reason("one text is one query", "write one query for each"),
}

# --- functions ------------------------------------------------------------------------

#: The message about ROUND around an aggregate.
ROUNDED: Final = Reason("round the answer, at no cost", "leave it out")
#: The message about a cast that is not read.
CASTS: Final = Reason(
    "times become dates and timestamps, integers become numbers and texts, and booleans"
    " become integers",
)
_OF_ROWS: Final = Reason("rows are never released", "add an aggregate: COUNT(*)")
_PARTS: Final = Reason(
    "times are grouped by their period, or by a part of it",
    "write DATE_TRUNC('month', column), or EXTRACT(MONTH FROM column)",
)
_OTHERS: Final = Reason(
    "the reference of query files lists the functions that are read",
    "compute it in the data, declare that column, and name it",
)
#: Supported aggregates, for suggestions.
_READ: Final = (
    "COUNT", "COUNT_IF", "SUM", "AVG", "VARIANCE", "VAR_SAMP", "VAR_POP", "STDDEV",
    "STDDEV_SAMP", "STDDEV_POP", "MEDIAN", "QUANTILE", "APPROX_QUANTILE",
    "PERCENTILE_CONT", "DATE_TRUNC", "DATE", "CAST",
)  # fmt: skip
_MEANT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("MEAN", "AVERAGE"), "AVG(column)"),
    **dict.fromkeys(("STD", "STDEV", "STDDEVP"), "STDDEV(column)"),
    "VAR": "VARIANCE(column)",
    **dict.fromkeys(("TOTAL", "SUM_DISTINCT"), "SUM(column)"),
    **dict.fromkeys(
        ("COUNT_DISTINCT", "NUNIQUE", "COUNTD", "APPROX_DISTINCT"),
        "COUNT(DISTINCT column)",
    ),
    **dict.fromkeys(
        ("PERCENTILE", "PERCENTILE_APPROX", "APPROX_PERCENTILE"),
        "QUANTILE(column, 0.5)",
    ),
    "CONVERT": "CAST(column AS DATE)",
    **dict.fromkeys(
        ("SUM_IF", "SUMIF"), "SUM(CASE WHEN condition THEN column ELSE 0 END)"
    ),
    **dict.fromkeys(("NVL", "IFF"), "COALESCE(column, 0), or IF(condition, 1, 0)"),
    **dict.fromkeys(("DATETRUNC", "TRUNC"), "DATE_TRUNC('month', column)"),
    **dict.fromkeys(("TO_DATE", "STR_TO_DATE", "MAKE_DATE"), "DATE '2026-11-30'"),
}
_FUNCTIONS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(
        (
            "INITCAP", "LTRIM", "RTRIM", "SQRT", "LOG", "LN", "EXP", "POWER", "POW",
            "REGEXP_REPLACE", "SPLIT_PART",
        ),
        _COMPUTED,
    ),
    **dict.fromkeys(
        ("YEARWEEK", "MONTHNAME", "DAYNAME", "STRFTIME", "TO_CHAR", "DATE_FORMAT",
         "FORMAT_DATE", "LAST_DAY", "EPOCH"),
        _PARTS,
    ),
    **dict.fromkeys(("ARRAY_AGG", "LIST", "STRING_AGG", "LISTAGG", "GROUP_CONCAT"),
                    _OF_ROWS),
    **{name: Reason("", f"write {suggestion}") for name, suggestion in _MEANT.items()},
}  # fmt: skip


def of_function(name: str) -> tuple[Reason, str]:
    """Return why a function is not read, and which one is perhaps meant."""
    known = _FUNCTIONS.get(name, WORDS.get(name))
    if known is not None:
        return known, ""
    return _OTHERS, nearest(name, (*_READ, *BY_WORD))

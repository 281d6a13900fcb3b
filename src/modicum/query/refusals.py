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


_SORTED: Final = Reason(
    "the answer is sorted and cut at the end of the query, by numbers that are written",
    "write ORDER BY and LIMIT last: … GROUP BY key ORDER BY COUNT(*) DESC LIMIT 10",
)
_FILTERED: Final = Reason(
    "HAVING looks at the groups of the answer, behind GROUP BY",
    "write … GROUP BY key HAVING COUNT(*) > 10",
)
_QUALIFIED: Final = Reason(
    "ranks of rows reveal single rows",
    "rank groups of the answer: … GROUP BY key ORDER BY COUNT(*) DESC LIMIT 10",
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
    "a window over rows reveals single rows; one over the groups of the answer is free",
    "write it around an aggregate: SUM(COUNT(*)) OVER ()",
)
_OUTER: Final = Reason(
    "each row of the first table is read once, with at most one other row",
    "write JOIN … USING (id), or LEFT JOIN with the other table first",
)
_PARTNERS: Final = Reason(
    "rows are joined on the id only, so the nearest row of another table is not found",
    "compute it in the data, and declare that column",
)
_PATTERN: Final = Reason(
    "patterns are read that all engines read alike",
    "write column LIKE 'a%', or REGEXP_MATCHES(column, '^a')",
)
_COMPUTED: Final = Reason(
    "engines compute it differently, or a row could make it fail",
    "compute it in the data, declare that column, and name it",
)
_LEAST: Final = Reason(
    "the minimum is the value of a single row", "use a quantile: QUANTILE(column, 0.05)"
)
_GREATEST: Final = Reason(
    "the maximum is the value of a single row", "use a quantile: QUANTILE(column, 0.95)"
)
_SINGLE: Final = Reason(
    "this is the value of a single row, and nothing private is like it",
    "count each value: SELECT column, COUNT(*) … GROUP BY column",
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
    "a condition looks at one row, and not at rows of another query",
    "join a table that has one row for each id: JOIN … USING (id); or declare a column"
    " that says it",
)
_SERIES: Final = Reason(
    "groups without rows are in the answer anyway, if the values of keys are public",
    "group by the key, such as DATE_TRUNC('day', column), and give the `periods`",
)
_EVERYTHING: Final = Reason("", "leave it out, or name each key of GROUP BY")

#: Hints about unsupported words.
WORDS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(
        ("ORDER BY", "LIMIT", "OFFSET", "FETCH", "TOP", "SORT BY"), _SORTED
    ),
    "HAVING": _FILTERED,
    "QUALIFY": _QUALIFIED,
    **dict.fromkeys(("EXCEPT", "INTERSECT", "SELECT"), _ONE_QUERY),
    "UNION": Reason(
        "one query is one SELECT over declared tables",
        "for rows of several tables, write FROM (SELECT id FROM a UNION ALL SELECT id"
        " FROM b) AS t; for several groupings of the same rows, GROUP BY GROUPING SETS"
        " ((a), (b)); for several conditions, COUNT(*) FILTER (WHERE condition); else"
        " write one query for each SELECT",
    ),
    "WITH": INNER_QUERY,
    "RECURSIVE": Reason(
        "how many rows it makes may depend on the data",
        "list the values in a public table, and join it",
    ),
    **dict.fromkeys(("OVER", "WINDOW", "PARTITION BY"), _WINDOWS),
    **dict.fromkeys(("LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI"), _OUTER),
    **dict.fromkeys(("ASOF", "POSITIONAL"), _PARTNERS),
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
        ),
        _PATTERN,
    ),
    **dict.fromkeys(("^", "**", "&", "|", "<<", ">>"), _COMPUTED),
    "MIN": _LEAST,
    "MAX": _GREATEST,
    **dict.fromkeys(
        (
            "ARG_MIN",
            "ARG_MAX",
            "MIN_BY",
            "MAX_BY",
            "FIRST",
            "LAST",
            "ANY_VALUE",
            "FIRST_VALUE",
            "LAST_VALUE",
        ),
        _SINGLE,
    ),
    **dict.fromkeys(("?", "$", ":", "@", "#"), _PARAMETER),
    **dict.fromkeys(
        ("TABLESAMPLE", "SAMPLE", "RANDOM", "RAND", "UUID", "GEN_RANDOM_UUID"), _SAMPLED
    ),
    **dict.fromkeys(("GENERATE_SERIES", "RANGE"), _SERIES),
    **dict.fromkeys(
        ("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "NOW", "TODAY"), _CLOCK
    ),
    **dict.fromkeys(("ISNULL", "NOTNULL"), _NULL_TEST),
    **dict.fromkeys(("EXISTS", "ANY", "SOME"), _SUBQUERY),
    "ALL": _EVERYTHING,
    "DISTINCT": Reason(
        "values that some row has are those of single rows",
        "count each: SELECT column, COUNT(*) … GROUP BY column",
    ),
    "PIVOT": Reason("", "group by the column"),
    "UNNEST": _COMPUTED,
    "XOR": Reason("", "write it with AND, OR and NOT"),
    "IN": Reason("", "list the values in brackets: column IN (1, 2)"),
    "ROLLUP": Reason("", "write GROUP BY ROLLUP (a, b)"),
    "CUBE": Reason("", "write GROUP BY CUBE (a, b)"),
    "FILTER": Reason(
        "it stands behind an aggregate", "write COUNT(*) FILTER (WHERE condition)"
    ),
    "INTERVAL": Reason(
        "a constant interval is added to a time, or subtracted",
        "write column + INTERVAL 7 DAY; others are seconds, minutes, hours, weeks,"
        " months, quarters and years",
    ),
    "DATE_TRUNC": Reason(
        "", "write DATE_TRUNC('day', column): day, week, month, quarter or year"
    ),
    "COLLATE": Reason("text is compared exactly", "leave it out"),
    **dict.fromkeys(
        ("PERCENTILE_CONT", "PERCENTILE_DISC"),
        Reason("", "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY column)"),
    ),
    **dict.fromkeys(
        ("ASC", "DESC", "NULLS"),
        Reason("quantiles are ordered by their values", "leave it out"),
    ),
    "MODE": Reason(
        "the most frequent value follows from the counts of all",
        "write SELECT column, COUNT(*) … GROUP BY column ORDER BY COUNT(*) DESC"
        " LIMIT 1",
    ),
    "HISTOGRAM": Reason("", "write SELECT column, COUNT(*) … GROUP BY column"),
    "<=>": Reason("", "write IS NOT DISTINCT FROM"),
    "[": Reason("", "write a series of comparisons"),
    ";": Reason("one text is one query", "write one query for each"),
}

# --- functions ------------------------------------------------------------------------

#: The message about a cast that is not read.
CASTS: Final = Reason(
    "times become dates and timestamps, numbers and booleans become integers, and"
    " integers and dates become texts",
)
_OF_ROWS: Final = Reason(
    "values of rows are never released",
    "count each value: SELECT column, COUNT(*) … GROUP BY column",
)
#: The message about `*` outside of COUNT.
ALL_COLUMNS: Final = Reason(
    "rows are never released; the tables file says which columns there are",
    "count rows by a key: SELECT column, COUNT(*) … GROUP BY column",
)
#: The message about several columns of one COUNT(DISTINCT …).
SEVERAL: Final = Reason(
    "COUNT takes one column or expression, or several in brackets behind DISTINCT",
    "put them in brackets: COUNT(DISTINCT (x, y))",
)
_PARTS: Final = Reason(
    "times are grouped by their period, or by a part of it",
    "write DATE_TRUNC('month', column), EXTRACT(MONTH FROM column), or"
    " STRFTIME(column, '%Y-%m')",
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
            "INITCAP", "SQRT", "LOG", "LN", "EXP", "POWER", "POW", "REGEXP_REPLACE",
        ),
        _COMPUTED,
    ),
    **dict.fromkeys(
        ("YEARWEEK", "TO_CHAR", "DATE_FORMAT",
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

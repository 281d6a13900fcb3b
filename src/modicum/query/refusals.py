"""Why SQL is refused, and what to write instead, by the word that stands there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from modicum.core.errors import Code, InputError, Mark, Problem

#: Longer words are cut in messages.
_SHOWN_MAX: Final = 40


class Reason(NamedTuple):
    """Why something is not read, and what to do instead; either may be empty."""

    why: str = ""
    remedy: str = ""


def refused(
    code: Code, message: str, mark: Mark | None, *, label: str = "", reason: Reason
) -> InputError:
    """Return the error for a query that is refused, ready to be raised.

    Args:
        code: The code.
        message: What is wrong.
        mark: Where.
        label: A short remark for the place.
        reason: Why, and what to do instead.
    """
    notes = (reason.why,) if reason.why else ()
    return InputError(Problem(code, message, mark, label, notes, reason.remedy))


def not_read(
    word: str, mark: Mark | None, reason: Reason | None = None, *, here: bool = False
) -> InputError:
    """Return the error for a word of SQL that is not read, ready to be raised.

    Args:
        word: The word, as it stands in the text; nothing for a value, which no
            message repeats.
        mark: Where.
        reason: Why; what is known of the word, if left out.
        here: Whether it may stand elsewhere.
    """
    found = reason if reason is not None else WORDS.get(word.upper(), Reason())
    shown = word if len(word) <= _SHOWN_MAX else word[:_SHOWN_MAX] + "…"
    wrong = "cannot stand here in" if here else "is not part of"
    message = (
        f"{f'`{shown}`' if word else 'a value'} {wrong} the SQL that modicum reads"
    )
    return refused(Code.NOT_IN_SUBSET, message, mark, reason=found)


_SORTED: Final = Reason(
    "who has the answer may sort and cut it, at no cost", "leave it out"
)
_FILTERED: Final = Reason(
    "groups that are dropped by their true value would tell it",
    "leave it out, and drop groups of the answer: that costs nothing",
)
_ONE_QUERY: Final = Reason(
    "one query is one SELECT over declared tables", "write one query for each SELECT"
)
_WINDOWS: Final = Reason(
    "a value computed from other rows has no bound",
    "group instead, or compute it from the answer",
)
_INNER: Final = Reason(
    "rows without a partner would be filled with NULL", "write JOIN … USING (id)"
)
_PATTERN: Final = Reason(
    "conditions compare a column with values", "list the values: column IN ('a', 'b')"
)
_ARITHMETIC: Final = Reason(
    "each aggregate is of one column, each condition on one",
    "compute it in the data, declare that column, and name it",
)
_LEAST: Final = Reason(
    "the least and the first value are those of a single row",
    "ask for a quantile: QUANTILE(column, 0.05)",
)
_GREATEST: Final = Reason(
    "the greatest and the last value are those of a single row",
    "ask for a quantile: QUANTILE(column, 0.95)",
)
_PARAMETER: Final = Reason(
    "what is asked must stand in the text", "write the value itself"
)
_SAMPLED: Final = Reason(
    "a sample must be secret and accounted for", "say it in the release: sampling: …"
)
_CLOCK: Final = Reason(
    "an answer must not depend on when it is computed", "write the date itself"
)
_JOINED: Final = Reason(
    "each row must belong to the one whose id it has", "write JOIN … USING (id)"
)
_NULL_TEST: Final = Reason("", "write IS NULL or IS NOT NULL")
_SUBQUERY: Final = Reason(
    "conditions compare a column with values", "list the values: column IN (1, 2)"
)
_EVERYTHING: Final = Reason("", "leave it out, or name each key of GROUP BY")

#: What is known about words that are not read.
WORDS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(
        ("ORDER BY", "LIMIT", "OFFSET", "FETCH", "TOP", "SORT BY"), _SORTED
    ),
    **dict.fromkeys(("HAVING", "QUALIFY"), _FILTERED),
    **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT", "WITH", "SELECT"), _ONE_QUERY),
    **dict.fromkeys(("OVER", "WINDOW", "PARTITION BY"), _WINDOWS),
    **dict.fromkeys(
        ("LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "ASOF", "POSITIONAL"), _INNER
    ),
    **dict.fromkeys(("CROSS", "NATURAL", "LATERAL"), _JOINED),
    **dict.fromkeys(
        ("LIKE", "ILIKE", "GLOB", "SIMILAR TO", "RLIKE", "REGEXP", "~", "~~", "!~"),
        _PATTERN,
    ),
    **dict.fromkeys(
        ("+", "-", "*", "/", "//", "%", "||", "^", "**", "&", "|", "<<", ">>", "CASE"),
        _ARITHMETIC,
    ),
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
    "DISTINCT": Reason("groups are told apart by all their keys", "leave it out"),
    "XOR": Reason("", "write it with AND, OR and NOT"),
    "IN": Reason("", "list the values in brackets: column IN (1, 2)"),
    "GROUPING SETS": Reason("", "write one query for each set of keys"),
    "ROLLUP": Reason("", "write one query for each set of keys"),
    "CUBE": Reason("", "write one query for each set of keys"),
    "FILTER": Reason("conditions are those of WHERE", "ask another query for it"),
    "INTERVAL": Reason("", "write the date itself"),
    "DATE_TRUNC": Reason(
        "", "write DATE_TRUNC('day', column): day, week, month, quarter or year"
    ),
    "COLLATE": Reason("text is compared character by character", "leave it out"),
    "QUANTILE_CONT": Reason("", "write QUANTILE(column, 0.5)"),
    "QUANTILE_DISC": Reason("", "write QUANTILE(column, 0.5)"),
    "PERCENTILE_CONT": Reason(
        "", "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY column)"
    ),
    **dict.fromkeys(
        ("ASC", "DESC", "NULLS"),
        Reason("the order of a share is that of the values", "leave it out"),
    ),
    "PERCENTILE_DISC": Reason("", "write QUANTILE(column, 0.5)"),
    "APPROX_COUNT_DISTINCT": Reason("", "write COUNT(DISTINCT column)"),
    "<=>": Reason("", "write = and IS NULL"),
    "[": Reason("", "write one after the other"),
    ";": Reason("one text is one query", "write one query for each"),
}

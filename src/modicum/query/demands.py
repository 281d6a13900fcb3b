"""What a query must have, so that it can be priced and answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from modicum.core.errors import Code
from modicum.query.asking import Asked
from modicum.query.bounding import UNBOUNDED, Moves
from modicum.query.groups import GROUPS_MAX, values_of
from modicum.query.mistakes import refused
from modicum.query.statistics import Statistic
from modicum.release.vocabulary import Vocabulary

#: So many numbers get noise in one statistic, at most.
NUMBERS_MAX: Final = 10_000_000


def must_be_bounded(
    asked: Asked, found: Mapping[str, Moves], vocabulary: Vocabulary
) -> None:
    """Refuse a query whose loss is given for a unit that nothing bounds.

    Args:
        asked: The query.
        found: By unit, how many rows move.
        vocabulary: The units of the policy.

    Raises:
        InputError: If it is so.
    """
    if found[asked.unit].bounded:
        return
    same_id = [
        name
        for name, one in vocabulary.unit_facts.items()
        if one.id == vocabulary.unit_facts[asked.unit].id
    ]
    raise refused(
        Code.NOT_BOUNDED,
        f"nothing bounds how many rows one `{asked.unit}` has in this query,"
        " so no noise is enough",
        asked.mark,
        help=f"add one of {', '.join(f'`{name}: …`' for name in same_id)} to `bounds`,"
        " or name the `periods` that are read",
    )


def must_have_keys(asked: Asked, groups: int) -> None:
    """Refuse groups that nobody may tell, and too many of them.

    Args:
        asked: The query.
        groups: How many groups there are; `UNBOUNDED` if keys are not public.

    Raises:
        InputError: If it is so.
    """
    if groups == UNBOUNDED and asked.discovery is None:
        keys = asked.query.keys
        unknown = [
            key for key in keys if values_of(key, asked.tables, asked.part) is None
        ]
        hidden = ", ".join(f"`{key.name}`" for key in unknown or keys)
        raise refused(
            Code.DOES_NOT_FIT,
            f"not all values of the keys are public: {hidden}",
            (unknown or keys)[0].mark or asked.mark,
            notes=("which values the data has is a fact about people",),
            help="list `values` of the column in the tables file, name `periods` for"
            " keys that are dates, or let keys be told by noise: `discover`",
        )
    if groups == UNBOUNDED and asked.sampling is not None:
        raise refused(
            Code.DOES_NOT_FIT,
            "keys are not told by noise on a sample: no loss is proven for it",
            asked.sampling.mark or asked.mark,
            help="list `values` of the column in the tables file, or read all rows",
        )
    if GROUPS_MAX < groups < UNBOUNDED:
        raise refused(
            Code.DOES_NOT_FIT,
            f"the answer has {groups} groups; at most {GROUPS_MAX} are told",
            asked.mark,
            help="use longer periods or fewer values",
        )


def must_be_few(
    asked: Asked, needed: Mapping[Statistic, Sequence[str]], groups: int
) -> None:
    """Refuse what would draw noise for too many numbers, in trees above all.

    Args:
        asked: The query.
        needed: The statistics, and the aggregates that need each.
        groups: How many groups there are; `UNBOUNDED` if keys are discovered.

    Raises:
        InputError: If there are too many.
    """
    for statistic, serves in needed.items():
        numbers = statistic.numbers * (1 if groups == UNBOUNDED else groups)
        if numbers > NUMBERS_MAX:
            raise refused(
                Code.DOES_NOT_FIT,
                f"`{serves[0]}` takes {numbers} numbers with noise; at most"
                f" {NUMBERS_MAX} are told",
                asked.mark,
                help="use fewer `bins`, longer periods or fewer values",
            )

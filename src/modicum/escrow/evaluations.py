"""Evaluations: what is asked about a task, as one number.

None of these numbers is differentially private where exact answers go in; what may be
told of them is for contracts to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from modicum.core.canonical import Plain
from modicum.core.errors import Code
from modicum.core.rationals import number_text
from modicum.escrow.arguments import (
    Number,
    PublicTable,
    exact,
    mistake,
    name_of,
    names_of,
    one_of,
    public_rows,
    whole,
)
from modicum.escrow.programs import Range

#: What an evaluation looks at: a model that is fitted, or the answers as they are.
Looks: TypeAlias = Literal["classifier", "regressor", "answers"]

#: What each evaluation looks at, by its name.
LOOKS: Final[Mapping[str, Looks]] = MappingProxyType(
    {
        "accuracy": "classifier",
        "balanced_accuracy": "classifier",
        "transfer_accuracy": "classifier",
        "r2": "regressor",
        "rank_correlation": "answers",
        "relative_error": "answers",
        "top_k_overlap": "answers",
        "chi_square": "answers",
    }
)
SHARE: Final = Range(Fraction(0), Fraction(1))
CORRELATION: Final = Range(Fraction(-1), Fraction(1))
_K_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is asked about a task.

    Attributes:
        name: Its name in the catalogue, without a version.
        range: Where its scores lie.
        arguments: What its program is given, beside the arguments of the task.
        compares: Whether it holds the private answers against the exact ones; then
            there is no score of private answers alone.
        columns: The columns that it names.
    """

    name: str
    range: Range
    arguments: Mapping[str, Plain] = field(repr=False)
    compares: bool = False
    columns: tuple[str, ...] = ()

    @property
    def looks(self) -> Looks:
        """What it looks at."""
        return LOOKS[self.name]


def accuracy(cv: int = 5) -> Evaluation:
    """Return how often a classifier is right about rows that it was not fitted to.

    It is tried on the answers that it is fitted to, one fold after the other. So the
    labels that private answers are tried on have noise too: the score says what an
    analyst would measure on these answers, not how often the model is right about
    people.

    Args:
        cv: How many folds there are, from 2 to 20.

    Raises:
        InputError: If that is no number of folds.
    """
    return Evaluation("accuracy", SHARE, {"cv": _folds(cv)})


def balanced_accuracy(cv: int = 5) -> Evaluation:
    """Return the accuracy within each class, on average over classes.

    Raises:
        InputError: As for `accuracy`.
    """
    return Evaluation("balanced_accuracy", SHARE, {"cv": _folds(cv)})


def transfer_accuracy(cv: int = 5) -> Evaluation:
    """Return how often a classifier of private answers is right about exact ones.

    It compares, so there is a score of the exact run only. This says what the model is
    worth that an analyst fits to private answers; noise is in what it learns from, and
    not in what it is tried on.

    Raises:
        InputError: As for `accuracy`.
    """
    return Evaluation("transfer_accuracy", SHARE, {"cv": _folds(cv)}, compares=True)


def r2(cv: int = 5) -> Evaluation:
    """Return the share of variance that a regressor explains; -1 if it is less.

    Raises:
        InputError: As for `accuracy`.
    """
    return Evaluation("r2", CORRELATION, {"cv": _folds(cv)})


def rank_correlation(
    left: str,
    right: str | None = None,
    *,
    keys: Sequence[str] | None = None,
    reference: PublicTable | None = None,
) -> Evaluation:
    """Return whether two lists of numbers have the same order, by Spearman.

    Args:
        left: A column of numbers.
        right: Another column of the same table; then neither keys nor a reference are
            given.
        keys: As for `relative_error`.
        reference: As for `relative_error`.

    Raises:
        InputError: If a column is no name, both a column and a table are given to hold
            it against, or as for `relative_error`.
    """
    name = "rank_correlation"
    if right is None:
        return _held_against(name, CORRELATION, name_of("left", left), keys, reference)
    if keys is not None or reference is not None:
        raise mistake(
            Code.KEYS_CONFLICT,
            "`right` is a column of the same table: it cannot be combined with"
            " `keys` and `reference`",
            "leave out `right` to compare with another table",
        )
    columns = (name_of("left", left), name_of("right", right))
    arguments: dict[str, Plain] = {
        "column": left,
        "right": right,
        "keys": [],
        "public": None,
    }
    return Evaluation(name, CORRELATION, arguments, columns=columns)


def relative_error(
    column: str,
    *,
    keys: Sequence[str] | None = None,
    reference: PublicTable | None = None,
    floor: Number = 1,
    over: str = "median",
) -> Evaluation:
    """Return how far numbers lie from others, by row, in parts of these.

    Args:
        column: The column with the numbers.
        keys: The columns that tell rows apart; rows are matched by them. None or an
            empty list for a table with one row.
        reference: A public table with these keys and this column to hold them against.
            None for the exact answers; then there is a score of the exact run only.
        floor: The least that an error is divided by, above 0.
        over: Over rows, the `median` or the `mean`.

    Raises:
        InputError: If an argument is no name or number, out of range or none of those
            words, or if the reference lacks a column or has a key twice.
    """
    least = Fraction(1, 10**9)
    added: dict[str, Plain] = {
        "floor": number_text(exact("floor", floor, low=least)),
        "over": one_of("choice of `over`", over, ("median", "mean")),
    }
    found = _held_against(
        "relative_error", SHARE, name_of("column", column), keys, reference
    )
    return _with(found, added)


def top_k_overlap(
    k: int,
    by: str,
    *,
    keys: Sequence[str] | None = None,
    reference: PublicTable | None = None,
) -> Evaluation:
    """Return how many of the k largest rows are among the k largest elsewhere.

    Args:
        k: How many, from 1 to 1,000.
        by: The column of numbers by which rows are large.
        keys: As for `relative_error`.
        reference: As for `relative_error`.

    Raises:
        InputError: If `k` is out of range, or as for `relative_error`.
    """
    added: dict[str, Plain] = {"k": whole("k", k, 1, _K_MAX)}
    found = _held_against("top_k_overlap", SHARE, name_of("by", by), keys, reference)
    return _with(found, added)


def chi_square(rows: str, columns: str, count: str) -> Evaluation:
    """Return the p-value of a test whether two columns are independent.

    Counts below 0, as noise makes them, are set to 0. The test does not know of noise,
    which makes p smaller than it should be.

    Args:
        rows: The column whose values are the lines of the table of counts.
        columns: The column whose values are its columns.
        count: The column with the counts.

    Raises:
        InputError: If one is no name, or two are the same.
    """
    named = {"rows": rows, "columns": columns, "count": count}
    for what, one in named.items():
        name_of(what, one)
    names_of("chi_square", list(named.values()))
    return Evaluation("chi_square", SHARE, dict(named), columns=(rows, columns, count))


def _folds(cv: int) -> int:
    return whole("cv", cv, 2, 20)


def _held_against(
    name: str,
    range_: Range,
    column: str,
    keys: Sequence[str] | None,
    reference: PublicTable | None,
) -> Evaluation:
    """Return an evaluation of a column against a public table, or the exact answers."""
    by = names_of("keys", () if keys is None else keys)
    if column in by:
        raise mistake(
            Code.DUPLICATE_NAME,
            f"`{column}` is both the numeric column and one of `keys`",
            "list only identifying columns in `keys`",
        )
    arguments: dict[str, Plain] = {"column": column, "keys": list(by), "public": None}
    if name == "rank_correlation":
        arguments["right"] = None
    if reference is not None:
        arguments["public"] = public_rows(reference, by, column)
    compares = reference is None
    return Evaluation(name, range_, arguments, compares, columns=(*by, column))


def _with(found: Evaluation, added: Mapping[str, Plain]) -> Evaluation:
    arguments = {**found.arguments, **added}
    return Evaluation(found.name, found.range, arguments, found.compares, found.columns)

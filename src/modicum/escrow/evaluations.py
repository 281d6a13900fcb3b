"""Evaluations: a number that measures a task.

None of these numbers is differentially private if computed from exact answers;
contracts define what may be disclosed.
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

#: The input of an evaluation: a fitted model, or the answers.
Looks: TypeAlias = Literal["classifier", "regressor", "answers"]

#: The input of each evaluation, by its name.
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
    """The evaluation of a task.

    Attributes:
        name: Its name in the catalogue, without a version.
        range: The range of its scores.
        arguments: The arguments of its program, besides those of the task.
        compares: Whether it compares the private answers with the exact ones; then
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
        """Its input."""
        return LOOKS[self.name]


def accuracy(cv: int = 5) -> Evaluation:
    """Return the accuracy of a classifier on held-out rows.

    It is cross-validated on the answers that it is fitted to. So the labels of private
    answers that it is tested on are noisy, too: the score is what an analyst would
    measure on these answers, not the accuracy about people.

    Args:
        cv: The number of folds, from 2 to 20.

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
    """Return the accuracy on exact answers of a classifier of private ones.

    It compares, so there is a score of the exact run only. It measures the model that
    an analyst fits to private answers; the training data is noisy, and the test data is
    not.

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
    """Return the rank correlation of two lists of numbers, by Spearman.

    Args:
        left: A column of numbers.
        right: Another column of the same table; then neither keys nor a reference are
            given.
        keys: As for `relative_error`.
        reference: As for `relative_error`.

    Raises:
        InputError: If a column is no name, both a column and a table to compare with
            are given, or as for `relative_error`.
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
    """Return the relative error of numbers against reference values, by row.

    Args:
        column: The column with the numbers.
        keys: The columns that identify rows, for matching. None or an empty list for a
            table with one row.
        reference: A public table with these keys and this column to compare with. None
            for the exact answers; then there is a score of the exact run only.
        floor: The least that an error is divided by, above 0.
        over: Over rows, the `median` or the `mean`.

    Raises:
        InputError: If an argument has a wrong type, is out of range or an unknown word,
            or if the reference lacks a column or has a key twice.
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
    """Return the share of the k largest rows among the k largest elsewhere.

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

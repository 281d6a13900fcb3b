"""The best of a random number of runs of a mechanism, as values and as plain data.

All else of a mechanism describes one run. The loss of the best one, and what it
assumes, are in `modicum.accounting.private_selection`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from modicum.accounting.number_of_runs import NegativeBinomial, Poisson, Runs
from modicum.core.canonical import Plain
from modicum.core.document import Node
from modicum.core.errors import Code, InputError
from modicum.core.rationals import brief, number_text
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    fail,
    number,
    positive,
    probability,
)


def _shape(node: Node, what: str) -> Fraction:
    value = number(node, what)
    if value <= -1:
        raise fail(
            Code.OUT_OF_RANGE, f"{what} must be above -1, got {brief(value)}", node
        )
    return value


#: The distributions of a file that are a negative binomial of this shape.
_SHAPES = {"geometric": Fraction(1), "logarithmic": Fraction(0)}
#: The parameters of each distribution.
DISTRIBUTIONS = {
    **dict.fromkeys(_SHAPES, ("gamma",)),
    "negative-binomial": ("eta", "gamma"),
    "poisson": ("mean",),
}
_READERS = {"eta": _shape, "gamma": probability, "mean": positive}
#: The keys of a selection.
KEYS = frozenset({"distribution", *_READERS})
#: The format of numbers, as for those of a stored description; `eta` may be negative.
_NUMBER = re.compile(r"-?\d{1,4300}(/[1-9]\d{0,4299}|\.\d{1,4300})?", re.ASCII)


def read_selection(node: Node) -> Runs:
    """Return the distribution of the number of runs.

    Raises:
        InputError: With every mistake found.
    """
    form = "write  {distribution: geometric, gamma: …}"
    fields = Fields(node, "`selection`", help=form)
    word = choice(
        fields.take("distribution"), "distribution", DISTRIBUTIONS, Code.UNKNOWN_CHOICE
    )
    found = Problems()
    values: dict[str, Fraction] = {}
    for key in DISTRIBUTIONS[word]:
        with found.guard():
            values[key] = _READERS[key](fields.take(key), f"`{key}`")
    with found.guard():
        fields.finish()
    found.raise_any()
    return _runs(word, values)


def _runs(word: str, values: Mapping[str, Fraction]) -> Runs:
    if word == "poisson":
        return Poisson(values["mean"])
    eta = _SHAPES[word] if word in _SHAPES else values["eta"]
    return NegativeBinomial(eta, values["gamma"])


def selection_to_plain(runs: Runs) -> dict[str, Plain]:
    """Return a selection as plain data, with its exact numbers as text.

    A distribution is written alike, whatever its name in a file.
    """
    if isinstance(runs, Poisson):
        return {"distribution": "poisson", "mean": number_text(runs.mean)}
    return {
        "distribution": "negative-binomial",
        "eta": number_text(runs.eta),
        "gamma": number_text(runs.gamma),
    }


def selection_from_plain(plain: Plain) -> Runs:
    """Return the selection that plain data encodes.

    Raises:
        ValueError: If it has another form.
    """
    if isinstance(plain, Mapping):
        word, *texts = (plain.get(key) for key in ("distribution", *_READERS))
        values = {
            key: Fraction(text)
            for key, text in zip(_READERS, texts, strict=True)
            if isinstance(text, str) and _NUMBER.fullmatch(text)
        }
        try:
            found = _runs(str(word), values)
        except (KeyError, InputError):
            pass
        else:
            if selection_to_plain(found) == plain:
                return found
    message = "its selection is no distribution of a number of runs"
    raise ValueError(message)


def selection_note(description: Mapping[str, Plain]) -> str:
    """Return the selection of a described mechanism, as text; "" if it runs once."""
    if "selection" not in description:
        return ""
    try:
        return selection_text(selection_from_plain(description["selection"]))
    except ValueError:
        return "and is selected in a way that this version does not support"


def selection_text(runs: Runs) -> str:
    """Return a selection as text.

    Examples:
        >>> selection_text(NegativeBinomial(Fraction(1), Fraction(1, 20)))
        'a geometric number of times (gamma 0.05, mean 20), and the best is taken'
        >>> selection_text(Poisson(Fraction(20)))
        'a Poisson number of times (mean 20), and the best is taken'
    """
    if isinstance(runs, Poisson):
        law, shown = "Poisson", ""
    else:
        names = {shape: name for name, shape in _SHAPES.items()}
        law = names.get(runs.eta, "negative binomial")
        eta = "" if runs.eta in names else f"eta {brief(runs.eta)}, "
        shown = f"{eta}gamma {brief(runs.gamma)}, "
    mean = brief(Fraction(runs.mean))
    return f"a {law} number of times ({shown}mean {mean}), and the best is taken"

"""The models that tasks may fit, with their parameters: a closed list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from modicum.core.canonical import Plain
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.escrow.arguments import exact, whole

ModelKind: TypeAlias = Literal["classifier", "regressor"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What may be chosen of a model.

    Attributes:
        low: The least value.
        high: The greatest.
        usual: What it is if nothing is said.
        whole: Whether it is a whole number.
    """

    low: Fraction
    high: Fraction
    usual: Fraction
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A model.

    Attributes:
        name: Its name, as `LIBRARY:CLASS`.
        kind: Whether it tells classes or numbers.
        parameters: What may be chosen, by name.
    """

    name: str
    kind: ModelKind
    parameters: Mapping[str, Parameter]


def _whole(low: int, high: int, usual: int) -> Parameter:
    return Parameter(Fraction(low), Fraction(high), Fraction(usual), whole=True)


def _real(low: str, high: str, usual: str) -> Parameter:
    return Parameter(Fraction(low), Fraction(high), Fraction(usual))


_TREE: Final = {"max_depth": _whole(1, 20, 5), "min_samples_leaf": _whole(1, 1000, 1)}
_FOREST: Final = {
    "n_estimators": _whole(1, 50, 20),
    "max_depth": _whole(1, 20, 8),
    "min_samples_leaf": _whole(1, 1000, 1),
}

_LISTED: Final[tuple[tuple[str, ModelKind, dict[str, Parameter]], ...]] = (
    ("LogisticRegression", "classifier", {"C": _real("1/1000", "1000", "1")}),
    ("DecisionTreeClassifier", "classifier", _TREE),
    ("RandomForestClassifier", "classifier", _FOREST),
    ("GaussianNB", "classifier", {"var_smoothing": _real("1e-12", "1", "1e-9")}),
    ("LinearRegression", "regressor", {}),
    ("Ridge", "regressor", {"alpha": _real("0", "1000000", "1")}),
    ("DecisionTreeRegressor", "regressor", _TREE),
)

#: Every model by its name.
MODELS: Final[Mapping[str, Model]] = MappingProxyType(
    {
        f"sklearn:{name}": Model(f"sklearn:{name}", kind, MappingProxyType(parameters))
        for name, kind, parameters in _LISTED
    }
)


def settled(model: Model, given: Mapping[str, object]) -> dict[str, Plain]:
    """Return every parameter of a model, those that are not given as usual.

    Args:
        model: The model.
        given: What was chosen, by name.

    Raises:
        InputError: If there is no such parameter, or its value is out of range.
    """
    for name in given:
        if name not in model.parameters:
            listed = ", ".join(f"`{one}`" for one in model.parameters)
            raise InputError(
                Problem(
                    Code.UNKNOWN_KEY,
                    f"`{model.name}` has no parameter `{name}`",
                    label=nearest(name, model.parameters),
                    help=f"it has {listed}" if listed else "it has none",
                )
            )
    found: dict[str, Plain] = {}
    for name, one in model.parameters.items():
        value = given.get(name)
        if one.whole:
            least, most, usual = int(one.low), int(one.high), int(one.usual)
            found[name] = usual if value is None else whole(name, value, least, most)
        else:
            chosen = (
                one.usual if value is None else exact(name, value, one.low, one.high)
            )
            found[name] = number_text(chosen)
    return found

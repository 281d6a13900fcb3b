"""The kinds of mechanism that can be named: their parameters, and what they cost.

A kind with all its parameters has a curve; with one of them left open it is a family,
whose open parameter can be calibrated to a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from msgspec import Struct

from modicum.accounting import amplification, mechanisms
from modicum.accounting.budgets import Budget
from modicum.accounting.curves import Curve, composed
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text

Values = Mapping[str, Fraction]

_ONE = Fraction(1)


class Parameter(Struct, frozen=True):
    """A parameter of a kind of mechanism.

    Attributes:
        name: As it is typed.
        meaning: What it is, in a few words.
        rising: Whether the loss rises with it; that of noise falls.
        default: What it is if not given; None if it must be.
        least: It is at least this, or above it if `open_below`.
        most: It is at most this, if there is a bound.
        whole: Whether it is an integer.
        open_below: Whether `least` itself is excluded.
    """

    name: str
    meaning: str
    rising: bool = True
    default: Fraction | None = None
    least: Fraction = Fraction(0)
    most: Fraction | None = None
    whole: bool = False
    open_below: bool = True


class Kind(Struct, frozen=True):
    """A kind of mechanism.

    Attributes:
        name: As it is typed.
        parameters: All of them, the one to calibrate first by habit in front.
        build: From all parameters to the curve.
        relation: The neighboring relation under which the curve holds.
    """

    name: str
    parameters: tuple[Parameter, ...]
    build: Callable[[Values], Curve]
    relation: str = "that of the sensitivity"


def _noise(name: str, meaning: str) -> Parameter:
    return Parameter(name, meaning, rising=False)


def _count(name: str, meaning: str, default: int | None = 1) -> Parameter:
    given = None if default is None else Fraction(default)
    least = Fraction(1)
    return Parameter(
        name, meaning, default=given, least=least, whole=True, open_below=False
    )


def _change(norm: str) -> Parameter:
    return Parameter(
        "sensitivity", f"largest {norm} change of the answer", default=_ONE
    )


def _eps(meaning: str, name: str = "eps") -> Parameter:
    return Parameter(name, meaning)


_POSITIVES = "largest number of positive answers"
_SCORES = "the parameter, for scores of sensitivity 1"


def _dp_sgd(v: Values) -> Curve:
    step = amplification.poisson_gaussian(
        sampling_rate=v["sampling-rate"], noise_multiplier=v["noise-multiplier"]
    )
    return composed([(step, int(v["steps"]))])


_TABLE: tuple[Kind, ...] = (
    Kind(
        "laplace",
        (_noise("scale", "scale of the noise"), _change("L1")),
        lambda v: mechanisms.laplace(sensitivity_l1=v["sensitivity"], scale=v["scale"]),
    ),
    Kind(
        "gaussian",
        (_noise("sigma", "standard deviation of the noise"), _change("L2")),
        lambda v: mechanisms.gaussian(
            rho=mechanisms.gaussian_rho(
                sensitivity_l2=v["sensitivity"], sigma=v["sigma"]
            )
        ),
    ),
    Kind(
        "discrete-laplace",
        (
            _noise("scale", "scale of the noise"),
            _count("sensitivity", "largest L1 change of the integer answers"),
        ),
        lambda v: mechanisms.discrete_laplace(
            sensitivity_l1=int(v["sensitivity"]), scale=v["scale"]
        ),
    ),
    Kind(
        "discrete-gaussian",
        (_noise("sigma", "parameter of the noise"), _change("L2")),
        lambda v: mechanisms.discrete_gaussian(
            sensitivity_l2=v["sensitivity"], sigma=v["sigma"]
        ),
    ),
    Kind(
        "randomized-response",
        (
            Parameter("truth", "probability of the true value", most=_ONE),
            _count("values", "number of possible values", 2),
            _count("answers", "independent answers of one unit"),
        ),
        lambda v: mechanisms.randomized_response(
            truth=v["truth"], values=int(v["values"]), answers=int(v["answers"])
        ),
        "a change of the unit's own values",
    ),
    Kind(
        "exponential", (_eps(_SCORES),), lambda v: mechanisms.exponential(eps=v["eps"])
    ),
    Kind(
        "permute-and-flip",
        (_eps(_SCORES),),
        lambda v: mechanisms.report_noisy_max(eps=v["eps"], noise="exponential"),
    ),
    Kind(
        "report-noisy-max",
        (_eps("the noise is Laplace of scale 2/eps"),),
        lambda v: mechanisms.report_noisy_max(eps=v["eps"], noise="laplace"),
    ),
    Kind(
        "sparse-vector",
        (
            _eps("the queries' noise has scale 2/eps-queries", "eps-queries"),
            _eps("the threshold's noise has scale 1/eps-threshold", "eps-threshold"),
            _count("positives", f"{_POSITIVES}; the threshold is drawn anew"),
        ),
        lambda v: mechanisms.sparse_vector(
            eps_threshold=v["eps-threshold"],
            eps_queries=v["eps-queries"],
            positives=int(v["positives"]),
        ),
    ),
    Kind(
        "sparse-vector-one-threshold",
        (
            _eps("the queries' noise has scale 2*positives/eps-queries", "eps-queries"),
            _eps("the threshold's noise has scale 1/eps-threshold", "eps-threshold"),
        ),
        lambda v: mechanisms.sparse_vector_one_threshold(
            eps_threshold=v["eps-threshold"], eps_queries=v["eps-queries"]
        ),
    ),
    Kind(
        "dp-sgd",
        (
            _noise("noise-multiplier", "standard deviation over clipping norm"),
            Parameter("sampling-rate", "of each Poisson sample", most=_ONE),
            _count("steps", "number of steps, each on a fresh sample", None),
        ),
        _dp_sgd,
        "add-remove",
    ),
    Kind(
        "pate-gnmax",
        (_noise("sigma", "standard deviation of each count's noise"),),
        lambda v: mechanisms.pate_gnmax(sigma=v["sigma"]),
        "a change of everything that one teacher was given",
    ),
    Kind(
        "pure",
        (_eps("a proven pure epsilon"),),
        lambda v: mechanisms.declared_pure(eps=v["eps"]),
        "that of the guarantee",
    ),
    Kind(
        "zcdp",
        (Parameter("rho", "a proven rho"),),
        lambda v: mechanisms.declared_zcdp(rho=v["rho"]),
        "that of the guarantee",
    ),
    Kind(
        "gdp",
        (Parameter("mu", "a proven mu"),),
        lambda v: mechanisms.declared_gdp(mu=v["mu"]),
        "that of the guarantee",
    ),
)

#: Every kind by its name.
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _TABLE})


def kind_named(name: str) -> Kind:
    """Return a kind of mechanism by its name.

    Raises:
        InputError: If there is none of that name.

    Examples:
        >>> kind_named("laplace").name
        'laplace'
        >>> kind_named("gauss")
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: unknown kind of mechanism `gauss`
    """
    if name not in KINDS:
        raise InputError(
            Problem(
                Code.UNKNOWN_MECHANISM,
                f"unknown kind of mechanism `{name}`",
                help=f"choose one of {', '.join(KINDS)}",
            )
        )
    return KINDS[name]


def curve_of_kind(kind: Kind, values: Values) -> Curve:
    """Return what a mechanism costs.

    Args:
        kind: The kind of mechanism.
        values: Its parameters; those with a default may be missing.

    Raises:
        InputError: If a parameter is missing, unknown or out of its range.

    Neighboring relation:
        `kind.relation`.

    Examples:
        >>> gaussian = kind_named("gaussian")
        >>> curve_of_kind(gaussian, {"sigma": Fraction(2)}).rho
        Fraction(1, 8)
    """
    known = complete_values(kind, values)
    missing = [p for p in kind.parameters if p.name not in known]
    if missing:
        raise InputError(
            Problem(
                Code.MISSING_KEY,
                f"`{kind.name}` needs `{missing[0].name}`: {missing[0].meaning}",
                help=f"add {missing[0].name}=...",
            )
        )
    return kind.build(known)


def calibrated(
    kind: Kind, values: Values, target: Budget, *, runs: int = 1, find: str = ""
) -> tuple[str, Fraction]:
    """Return the open parameter of a mechanism, and its value for a target.

    Args:
        kind: The kind of mechanism.
        values: Its parameters without the one to be found; those with a default
            may be missing.
        target: What it may cost.
        runs: How often it runs, fixed in advance.
        find: The parameter to be found, if it has a default.

    Raises:
        InputError: If there is not one open parameter, or no value meets the target.

    Examples:
        >>> from modicum.accounting.budgets import ZcdpBudget
        >>> calibrated(kind_named("gaussian"), {}, ZcdpBudget(Fraction(1, 8)))
        ('sigma', Fraction(2, 1))
    """
    from modicum.accounting.calibration import Family, calibrate, most

    known = complete_values(kind, values)
    if find:
        known.pop(find, None)
    opened = [p for p in kind.parameters if p.name not in known]
    if len(opened) != 1 or (find and opened[0].name != find):
        raise _not_one_open(kind, opened)
    found = opened[0]

    def at(value: Fraction) -> Curve:
        return composed([(kind.build({**known, found.name: value}), runs)])

    if found.whole:
        return found.name, Fraction(most(lambda count: at(Fraction(count)), target))
    low = _truth_by_chance(known) if found.name == "truth" else found.least
    family = Family(found.name, at, found.rising, low, found.most)
    return found.name, calibrate(family, target)


def _not_one_open(kind: Kind, opened: list[Parameter]) -> InputError:
    names = ", ".join(f"`{parameter.name}`" for parameter in opened)
    first = kind.parameters[0].name
    return InputError(
        Problem(
            Code.MISSING_KEY,
            f"one parameter of `{kind.name}` is found from a target; open: {names}"
            if opened
            else f"all parameters of `{kind.name}` are given: none is left to find",
            help="give all parameters but one"
            if opened
            else f"leave one out, or ask for it: {first}=?",
        )
    )


def _truth_by_chance(known: Values) -> Fraction:
    return 1 / known["values"]


def complete_values(kind: Kind, values: Values) -> dict[str, Fraction]:
    """Return the parameters with defaults.

    Raises:
        InputError: If a parameter is unknown or out of its range.

    Examples:
        >>> complete_values(KINDS["gaussian"], {"sigma": Fraction(2)})
        {'sigma': Fraction(2, 1), 'sensitivity': Fraction(1, 1)}
    """
    by_name = {p.name: p for p in kind.parameters}
    for name, value in values.items():
        if name not in by_name:
            raise InputError(
                Problem(
                    Code.UNKNOWN_KEY,
                    f"`{kind.name}` has no parameter `{name}`",
                    help=f"it has {', '.join(by_name)}",
                )
            )
        _check(by_name[name], value)
    defaults = {p.name: p.default for p in kind.parameters if p.default is not None}
    known = {**defaults, **values}
    if "truth" in known:
        _check_truth(known["truth"], known["values"])
    return {name: known[name] for name in by_name if name in known}


def _check_truth(truth: Fraction, values: Fraction) -> None:
    # Below, the true value would be the least likely one, and the odds the inverse.
    if truth * values < 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"truth is {number_text(truth)}, below chance for {values} values",
                help=f"it is a number from 1/{values} to 1",
            )
        )


def _check(parameter: Parameter, value: Fraction) -> None:
    below = value < parameter.least or (
        parameter.open_below and value == parameter.least
    )
    above = parameter.most is not None and value > parameter.most
    broken = parameter.whole and value.denominator != 1
    if below or above or broken:
        word = "above" if parameter.open_below else "at least"
        upper = "" if parameter.most is None else f", at most {parameter.most}"
        number = "an integer" if parameter.whole else "a number"
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"{parameter.name} is {number_text(value)}",
                help=f"it is {number} {word} {parameter.least}{upper}",
            )
        )

"""Mechanisms by name and parameters: their curves, and the noise for a target."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting import amplification
from modicum.accounting.budgets import Budget
from modicum.accounting.curves import Curve, composed
from modicum.accounting.mechanisms import ACCOUNT_KINDS
from modicum.accounting.mechanisms.kind import Kind, Parameter, Values
from modicum.core.errors import Code, InputError, Problem

#: The sampling methods, and their neighboring relations.
SAMPLINGS = {"poisson": "add-remove", "without-replacement": "substitute"}


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
    if name not in ACCOUNT_KINDS:
        raise InputError(
            Problem(
                Code.UNKNOWN_MECHANISM,
                f"unknown kind of mechanism `{name}`",
                help=f"choose one of {', '.join(ACCOUNT_KINDS)}",
            )
        )
    return ACCOUNT_KINDS[name]


def curve_of_kind(kind: Kind, values: Values) -> Curve:
    """Return the cost of a mechanism.

    Args:
        kind: The kind of mechanism.
        values: Its parameters; those with a default may be missing.

    Raises:
        InputError: If a parameter is missing, unknown or out of range.

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
    """Return the free parameter of a mechanism, and its value for a target.

    Args:
        kind: The kind of mechanism.
        values: Its parameters without the free one; those with a default may be
            missing.
        target: The budget.
        runs: The number of runs, fixed in advance.
        find: The free parameter, if it has a default.

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
    low = found.least if found.least_by is None else found.least_by(known)
    family = Family(found.name, at, found.rising, low, found.most)
    return found.name, calibrate(family, target)


def _not_one_open(kind: Kind, opened: list[Parameter]) -> InputError:
    names = ", ".join(f"`{parameter.name}`" for parameter in opened)
    first = kind.parameters[0].name
    return InputError(
        Problem(
            Code.MISSING_KEY,
            f"only one parameter of `{kind.name}` can be found from a target; missing:"
            f" {names}"
            if opened
            else f"all parameters of `{kind.name}` are given: none is missing",
            help="give all parameters but one"
            if opened
            else f"leave one out, or write {first}=?",
        )
    )


def complete_values(kind: Kind, values: Values) -> dict[str, Fraction]:
    """Return the parameters with defaults.

    Raises:
        InputError: If a parameter is unknown or out of range.

    Examples:
        >>> complete_values(ACCOUNT_KINDS["gaussian"], {"sigma": Fraction(2)})
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
        by_name[name].check(value)
    known = {**kind.defaults, **values}
    return {name: known[name] for name in by_name if name in known}


def sampled_curve(kind: Kind, values: Values, rate: Fraction, sampling: str) -> Curve:
    """Return the cost of one run of a mechanism on a fresh sample.

    Args:
        kind: The kind of mechanism.
        values: Its parameters.
        rate: The sampling rate, from 0 to 1.
        sampling: A key of `SAMPLINGS`.

    Raises:
        InputError: If the mechanism cannot be amplified so, or an argument is wrong.

    Neighboring relation:
        `SAMPLINGS[sampling]`, under which the parameters must hold.

    Source:
        As for the functions of `modicum.accounting.amplification`.

    Examples:
        >>> half = {"eps": Fraction(1)}
        >>> sampled = sampled_curve(
        ...     kind_named("pure"), half, Fraction(1, 10), "poisson"
        ... )
        >>> f"{sampled.eps:.9g}"
        '0.158565079'
    """
    _refuse(kind, sampling)
    base = curve_of_kind(kind, values)
    if sampling == "without-replacement":
        return amplification.without_replacement(base, sampling_rate=rate)
    if kind.on_sample is not None:
        return kind.on_sample(complete_values(kind, values), rate)
    return amplification.poisson(base, sampling_rate=rate)


def _refuse(kind: Kind, sampling: str) -> None:
    if sampling not in SAMPLINGS:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"no bound is known for samples drawn by `{sampling}`",
                notes=("a shuffled batch is neither of the two",),
                help=f"choose {' or '.join(f'`{name}`' for name in SAMPLINGS)}",
            )
        )
    if kind.samples:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"the steps of `{kind.name}` already run on samples",
                help="change its sampling-rate, or sample `gaussian`",
            )
        )
    if not kind.open_relation:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"`{kind.name}` is valid for {kind.relation}, which sampling does not"
                " amplify",
                help="do not sample it",
            )
        )

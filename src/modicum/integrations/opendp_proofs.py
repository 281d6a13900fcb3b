"""What OpenDP proves of a measurement, and which of its proofs are believed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms import declared_pure, declared_zcdp
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, InputError
from modicum.integrations.library_errors import loaded, unquoted

# Only what is known to state its loss fully. What waits for questions is not among
# them: what is asked later could not be looked at. Nor is what drops small groups by
# a threshold: the delta that OpenDP 0.16 states for that is too low.
_BELIEVED = {
    "measurements": frozenset(
        {
            "make_geometric",
            "make_gaussian",
            "make_laplace",
            "make_noisy_max",
            "make_noisy_top_k",
            "make_private_lazyframe",
            "make_private_quantile",
            "make_randomized_response",
            "make_randomized_response_bool",
        }
    ),
    "combinators": frozenset(
        {
            "make_approximate",
            "make_chain_mt",
            "make_chain_pm",
            "make_chain_tt",
            "make_composition",
            "make_fix_delta",
            "make_pureDP_to_zCDP",
            "make_zCDP_to_approxDP",
        }
    ),
}
# What comes after the noise reveals nothing more, whatever it is.
_AFTER_NOISE = {"make_chain_pm": "postprocess1"}
_MEASURES = {
    "MaxDivergence": "eps",
    "ZeroConcentratedDivergence": "rho",
    "Approximate(MaxDivergence)": "eps and delta",
    "Approximate(ZeroConcentratedDivergence)": "rho and delta",
}


def refuse_unproven(measurement: Any) -> None:
    """Refuse a measurement whose stated loss is not believed.

    Args:
        measurement: A measurement of OpenDP.

    Raises:
        InputError: If it is none, or holds a part that is not believed.
    """
    mod = loaded("opendp.mod", "OpenDP", "modicum[query]")
    if not isinstance(measurement, mod.Measurement):
        raise fail(
            Code.WRONG_TYPE,
            f"this is no measurement of OpenDP, but `{type(measurement).__name__}`",
            help="give what a function dp.m.make_… or a chain that ends in one returns",
        )
    parts = (mod.Measurement, mod.Transformation)
    for one in _parts(measurement, parts):
        _refuse_part(*one)


def _parts(
    found: Any, kinds: tuple[type, ...]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield how everything in a measurement was made: module, function, arguments.

    Of domains and metrics nothing is yielded: they may name what they were taken
    from, which does not run.
    """
    if isinstance(found, list | tuple):
        for one in found:
            yield from _parts(one, kinds)
    if not isinstance(found, kinds):
        return
    made = getattr(found, "__opendp_dict__", None)
    if made is None:
        raise _unknown("a part that does not say how it was made")
    name, arguments = made["__function__"], made["__kwargs__"]
    yield made["__module__"], name, arguments
    for key, value in arguments.items():
        if _AFTER_NOISE.get(name) != key:
            yield from _parts(value, kinds)


def _refuse_part(module: str, name: str, arguments: Mapping[str, Any]) -> None:
    if "threshold" in name or arguments.get("threshold") is not None:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{name}` drops small groups by a threshold, and OpenDP states a delta"
            " for that which is too low",
            help="list the groups in advance, or ask by  modicum query, which charges"
            " for finding groups",
        )
    if name.removeprefix("make_").startswith("user_"):
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{name}` states whatever its author wrote",
            help="declare its cost in a release of its own, and run it by"
            "  modicum release run",
        )
    if module in _BELIEVED and name not in _BELIEVED[module]:
        raise _unknown(f"`{name}`")


def _unknown(what: str) -> InputError:
    names = sorted(one for known in _BELIEVED.values() for one in known)
    return fail(
        Code.NOT_SUPPORTED,
        f"nothing is known about what {what} loses",
        notes=(f"known are {', '.join(names)}, and transformations",),
        help="ask one known measurement after the other, each as a mechanism",
    )


def measure_of(measurement: Any) -> str:
    """Return what a measurement's loss is stated in, such as `eps and delta`.

    Args:
        measurement: A measurement of OpenDP.

    Raises:
        InputError: If it is stated in something that has no place in the ledger.
    """
    given = str(measurement.output_measure)
    if given not in _MEASURES:
        raise fail(
            Code.NO_MEASURE,
            f"a loss in OpenDP's `{given[:100]}` has no place in a reservation",
            help="change it by dp.c.make_fix_delta, or by another combinator, into one"
            f" of {', '.join(_MEASURES)}",
        )
    return _MEASURES[given]


def proven_amounts(measurement: Any, d_in: Any) -> tuple[Fraction, Fraction]:
    """Return what a measurement's own map states: its eps or rho, and its delta.

    Args:
        measurement: A measurement of OpenDP.
        d_in: How far the data of neighbors may be apart.

    Raises:
        InputError: If it states no finite loss.
        UnavailableError: If its map fails.
    """
    stated = unquoted("OpenDP", "mapping a distance", lambda: measurement.map(d_in))
    pair = stated if isinstance(stated, tuple) else (stated, 0)
    amounts = [Fraction(one) if math.isfinite(one) else None for one in pair]
    loss, delta = amounts
    if loss is None or delta is None or min(loss, delta) < 0 or delta >= 1:
        raise fail(
            Code.COST_NOT_DERIVABLE,
            "OpenDP states no finite loss for this distance",
            help="give it noise",
        )
    return loss, delta


def proven_curve(measure: str, amounts: tuple[Fraction, Fraction]) -> Curve:
    """Return all that follows from what a map states.

    Args:
        measure: As `measure_of` returns it.
        amounts: As `proven_amounts` returns them.
    """
    loss, delta = amounts
    if measure.startswith("eps"):
        return declared_pure(eps=loss, delta=delta)
    return replace(declared_zcdp(rho=loss), delta=delta)

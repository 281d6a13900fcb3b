"""Randomized response: a true answer with some probability, else another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.curves import NOTHING, Curve, pure_mu2, pure_rho
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.kind import (
    Kind,
    Parameter,
    description,
    whole_number,
)
from modicum.accounting.privacy_loss.pairs import response_pair
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import Number, brief


@lru_cache(maxsize=4096)
@precise
def randomized_response(*, truth: Fraction, values: int, answers: int) -> Curve:
    """Return the curve of k-ary randomized response.

    Args:
        truth: Probability of the true value, at least 1/values and below 1; each
            other value has (1 - truth)/(values - 1).
        values: Number of possible values k, >= 2.
        answers: The number of independent answers of one instance of the unit, >= 1.

    Returns:
        Every measure; delta is 0: `answers` times the loss of one.

    Raises:
        InputError: If `truth` is out of range.

    Neighboring relation:
        A change of the unit's own values. That is also add/remove when everybody
        on a public list answers, in the data or not; it is not when the number of
        answers shows who is in the data.

    Source:
        Direct computation: ln(truth/other) for eps; the Renyi divergence between
        the answer's distributions for two values. rho and mu as for any pure
        mechanism; rho is tight for k = 2 (Bun & Steinke 2016, Prop. 3.3).

    Examples:
        >>> one = randomized_response(truth=Fraction(3, 4), values=2, answers=1)
        >>> one.loss().coordinates[0]
        1098612288669
    """
    if truth * values < 1:
        raise _out_of_range(
            f"`truth` must be at least 1/values = 1/{values}, got {brief(truth)}",
            "an answer that is false more often than by chance reveals the opposite:"
            " invert it",
        )
    if truth >= 1:
        raise _out_of_range(
            f"`truth` must be below 1, got {brief(truth)}",
            "an answer that is always true has no privacy",
        )
    if truth * values == 1:
        return NOTHING  # Every answer is as likely as any other.
    p = to_decimal(truth)
    q = to_decimal((1 - truth) / (values - 1))
    eps = p.ln() - q.ln()
    rest = (values - 2) * q

    def rdp(alpha: Fraction) -> Decimal:
        # ln(p^a q^(1-a) + q^a p^(1-a) + (k-2) q), with e^((a-1) eps) factored out so
        # that nothing overflows; p = q e^eps.
        less_one = to_decimal(alpha - 1)
        shrink = (-less_one * eps).exp()
        return eps + (p + rest * shrink + q * shrink * shrink).ln() / less_one

    return Curve(
        eps=answers * eps,
        rho=answers * pure_rho(eps),
        mu2=answers * pure_mu2(eps),
        renyi=lambda order: answers * min(rdp(order), eps),
    )


def _out_of_range(message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.OUT_OF_RANGE, message, help=remedy))


def describe_randomized_response(
    *,
    attributes: Sequence[str],
    truth: Number | None = None,
    values: int | None = None,
    contribution_bound: Mapping[str, int] | None = None,
    public_frame: bool | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe k-ary randomized response.

    Args:
        attributes: Attributes of the data it reads.
        truth: Probability of answering truthfully, at least 1/values, below 1.
        values: Number of possible values, 2 by default.
        contribution_bound: By unit, the maximum number of answers of one instance.
        public_frame: Whether everybody on a public list answers.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> describe_randomized_response(attributes=["age"], truth=0.75)["truth"]
        0.75
    """
    return description(
        "randomized-response",
        attributes,
        more,
        truth=truth,
        values=values,
        contribution_bound=contribution_bound,
        public_frame=public_frame,
    )


KINDS = (
    Kind(
        "randomized-response",
        (
            Parameter(
                "truth",
                "probability of the true value",
                most=Fraction(1),
                least_by=lambda v: 1 / v["values"],
            ),
            whole_number("values", "number of possible values", 2, least=2),
            whole_number("answers", "independent answers of one unit"),
        ),
        lambda v: randomized_response(
            truth=v["truth"], values=int(v["values"]), answers=int(v["answers"])
        ),
        relation="a change of the unit's own values",
        measure="eps",
        repeats="answers",
        pairs=lambda v: response_pair(v["truth"], int(v["values"]), int(v["answers"])),
    ),
)

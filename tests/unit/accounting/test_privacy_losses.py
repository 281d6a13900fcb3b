"""Certified distributions: the numbers that decide, their limits, and the normal tail.

That no bound is below the truth is tested in `tests/property`.
"""

from __future__ import annotations

import decimal
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from oracle.privacy_losses import MP

from modicum.accounting.decimals import precise
from modicum.accounting.grid import INFINITE
from modicum.accounting.losses import Loss
from modicum.accounting.mechanisms import declared_renyi, gaussian
from modicum.accounting.privacy_loss import normal
from modicum.accounting.privacy_loss.batches import (
    WORK_MAX,
    batch_delta,
    batch_epsilon,
)
from modicum.accounting.privacy_loss.pairs import (
    PURE,
    Batch,
    Pair,
    discrete_gaussian_pair,
    discrete_laplace_pair,
    gaussian_pair,
    laplace_pair,
    merged,
    pair_of_loss,
    response_pair,
    sampled_gaussian_pair,
)
from modicum.core.rationals import LOSS_UNIT

DELTA = Fraction(1, 10**6)


def some(value: Batch | None) -> Batch:
    assert value is not None
    return value


#: Epsilon at 1e-6 in units of 1e-12. Entries of version 6 were decided by these
#: numbers: others need another version of the events.
DECIDED = [
    ([*laplace_pair(Fraction(1, 10))] * 40, 2732495969647),
    ([*some(discrete_laplace_pair(3, Fraction(10)))] * 30, 7539677851234),
    ([*gaussian_pair(Fraction(1, 4))], 2254321679293),
    ([*some(discrete_gaussian_pair(Fraction(3, 2), Fraction(10)))] * 9, 1882958696089),
    ([*response_pair(Fraction(3, 4), 4, 20)], 44231111601297),
    ([(Pair(PURE, (Fraction(1, 7),), Fraction(1, 10**9)), 50)], 4745832361166),
    ([*sampled_gaussian_pair(Fraction(1, 50), Fraction(3, 2), 300)], 1226570592793),
    (
        [
            *laplace_pair(Fraction(1, 5)),
            *laplace_pair(Fraction(1, 7)),
            *gaussian_pair(Fraction(1, 10)),
            *sampled_gaussian_pair(Fraction(1, 9), Fraction(2), 5),
        ],
        1787765063781,
    ),
]


@pytest.mark.spec("ACC-17")
@pytest.mark.parametrize(("pairs", "units"), DECIDED)
def test_the_numbers_that_decide_stay_the_same(
    pairs: list[tuple[Pair, int]], units: int
) -> None:
    assert batch_epsilon(merged(pairs), DELTA) == units
    # Whatever the caller's context, and the order of the mechanisms.
    batch_epsilon.cache_clear()
    with decimal.localcontext(decimal.Context(prec=5, rounding=decimal.ROUND_DOWN)):
        assert batch_epsilon(merged(pairs[::-1]), DELTA) == units


def test_delta_is_at_most_the_one_that_epsilon_was_found_for() -> None:
    for pairs, units in DECIDED:
        batch = merged(pairs)
        found = batch_delta(batch, Fraction(units, LOSS_UNIT), DELTA)
        less = batch_delta(batch, Fraction(units - 10**6, LOSS_UNIT), DELTA)
        assert found is not None
        assert less is not None
        assert found <= DELTA < less


def test_nothing_is_lost_by_nothing() -> None:
    assert merged([]) == ()
    assert batch_epsilon((), DELTA) == 0
    assert batch_delta((), Fraction(1), DELTA) == 0
    assert (laplace_pair(Fraction(0)), gaussian_pair(Fraction(0))) == ((), ())
    assert discrete_laplace_pair(0, Fraction(1)) == ()
    assert discrete_gaussian_pair(Fraction(1, 2), Fraction(1)) == ()
    assert response_pair(Fraction(1, 4), 4, 9) == ()


def test_a_delta_of_the_mechanisms_is_infinite_loss() -> None:
    sure = Pair(PURE, (Fraction(0),), Fraction(1, 10**7))
    assert batch_epsilon(((sure, 9),), DELTA) == 0
    assert batch_epsilon(((sure, 11),), DELTA) == INFINITE


def test_what_is_too_large_has_no_bound() -> None:
    many = [laplace_pair(Fraction(1, n))[0] for n in range(1, WORK_MAX // 2 + 2)]
    assert batch_epsilon(merged(many[:-1]), DELTA) is not None
    assert batch_epsilon(merged(many), DELTA) is None
    ((step, _),) = sampled_gaussian_pair(Fraction(1, 10**4), Fraction(2))
    assert batch_epsilon(((step, 10**6),), DELTA) is not None
    assert batch_epsilon(((step, 2**31 - 1),), DELTA) is None
    far = [
        laplace_pair(Fraction(101)),
        gaussian_pair(Fraction(17)),
        sampled_gaussian_pair(Fraction(1, 9), Fraction(1, 5)),
        some(discrete_laplace_pair(101, Fraction(1))),
        some(discrete_gaussian_pair(Fraction(1), Fraction(1, 100))),
        ((Pair(PURE, (Fraction(101),)), 1),),
    ]
    assert [batch_epsilon(one, DELTA) for one in far] == [None] * len(far)
    # No worst case is known, or too many losses would have to be listed.
    assert discrete_gaussian_pair(Fraction(2), Fraction(9)) is None
    assert discrete_gaussian_pair(Fraction(1), Fraction(10**4)) is None
    assert discrete_laplace_pair(10**5, Fraction(1)) is None


def test_steps_of_any_size_meet_on_the_coarser_grid() -> None:
    tiny = laplace_pair(Fraction(1, 10**9))
    alone = batch_epsilon(laplace_pair(Fraction(1)), DELTA)
    both = batch_epsilon(merged([*tiny, *laplace_pair(Fraction(1))]), DELTA)
    nothing = (Pair(PURE, (Fraction(0),), Fraction(1, 10**9)), 1)
    assert alone is not None
    assert both is not None
    assert alone <= both < alone * 1.01
    assert batch_epsilon(merged([nothing, *laplace_pair(Fraction(1))]), DELTA)


def test_deltas_below_a_unit_of_mass_are_beyond_it() -> None:
    batch = merged([(laplace_pair(Fraction(1, 10))[0][0], 100)])
    units = [batch_epsilon(batch, Fraction(1, 10**n)) for n in (12, 20, 40)]
    assert None not in units
    assert [units[0], units[1] and units[1] < 10 * LOSS_UNIT] == [units[0], True]
    assert units[2] == INFINITE


def test_a_loss_without_pure_epsilon_or_mu_has_no_pair() -> None:
    renyi = declared_renyi(points={Fraction(2): Fraction(1, 10)})
    assert pair_of_loss(renyi.loss()) is None
    assert pair_of_loss(gaussian(rho=Fraction(1, 2)).loss()) == gaussian_pair(
        Fraction(1)
    )
    assert pair_of_loss(Loss((0,) * 28)) == ()


def test_the_normal_tail_is_that_of_mpmath() -> None:
    draw = random.Random(7)
    for _ in range(400):
        z = Decimal(draw.uniform(-7, normal.FAR)).quantize(Decimal("1e-20"))
        found = MP.mpf(str(precise(normal.tail)(z)))
        exact = MP.ncdf(-MP.mpf(str(z)))
        assert abs(found - exact) <= exact * MP.mpf(str(normal.ERROR))
    assert normal.tail(Decimal(18)) == 0

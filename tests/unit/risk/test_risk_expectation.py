"""The expected indicator against quadrature, mixtures and draws."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.risk_choices import mean_l1, mean_l2
from samples.influences import influence

from modicum.risk.noise import expected_l1, expected_l2


@pytest.mark.spec("RSK-2")
@pytest.mark.parametrize("dimensions", [1, 2, 3, 8, 51, 1000])
@pytest.mark.parametrize("distance", [0.0, 1e-6, 0.3, 1.0, 4.0, 25.0])
def test_the_mean_norm_is_that_of_a_mixture(distance: float, dimensions: int) -> None:
    found = expected_l2(distance, sigma=1.0, dimensions=dimensions)
    assert found == pytest.approx(mean_l2(distance, 1.0, dimensions), rel=1e-14)


@pytest.mark.parametrize("distance", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 1.0, 1e9, 1e290])
@pytest.mark.parametrize("dimensions", [1, 10**7])
def test_the_mean_norm_is_between_its_bounds(
    distance: float, sigma: float, dimensions: int
) -> None:
    """At sizes that no sum reaches: Jensen above; below, distance and noise alone."""
    found = expected_l2(distance, sigma=sigma, dimensions=dimensions)
    above = float(np.hypot(distance, np.sqrt(dimensions) * sigma))
    alone = expected_l2(0.0, sigma=sigma, dimensions=dimensions)
    assert max(distance, alone) * (1 - 1e-13) <= found <= above * (1 + 1e-13)


def test_the_mean_norm_scales() -> None:
    one = expected_l2(3.0, sigma=2.0, dimensions=5)
    far = expected_l2(3e200, sigma=2e200, dimensions=5)
    assert far == pytest.approx(one * 1e200, rel=1e-14)


@pytest.mark.spec("RSK-2")
@pytest.mark.parametrize("scale", [1e-3, 0.5, 1.0, 20.0])
@pytest.mark.parametrize("moves", [[], [0.3], [1.0, 2.5], [1e-4, 1.0, 7.0]])
def test_the_mean_l1_distance_is_an_integral(moves: list[float], scale: float) -> None:
    people = influence([moves], dimensions=4)
    found = expected_l1(people, scale=scale, dimensions=4)
    assert found[0] == pytest.approx(mean_l1(moves, scale, 4), rel=1e-13)


def test_draws_of_noise_are_as_far_as_expected() -> None:
    """Seed fixed; 400,000 draws; five standard errors: false alarm below 1e-6."""
    draw = np.random.default_rng(8)
    moves = np.array([1.0, 0.25, 2.0])
    laplace = np.abs(moves + draw.laplace(scale=1.5, size=(400_000, 3))).sum(axis=1)
    gauss = np.linalg.norm(moves + draw.normal(scale=1.5, size=(400_000, 3)), axis=1)
    people = influence([moves.tolist()], dimensions=3)
    wanted = float(expected_l1(people, scale=1.5, dimensions=3)[0])
    error = 5 * laplace.std() / np.sqrt(len(laplace))
    assert laplace.mean() == pytest.approx(wanted, abs=error)
    distance = float(np.linalg.norm(moves))
    wanted = expected_l2(distance, sigma=1.5, dimensions=3)
    error = 5 * gauss.std() / np.sqrt(len(gauss))
    assert gauss.mean() == pytest.approx(wanted, abs=error)

"""Prices of streams against whole matrices and every set of steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import pytest
from budget import counted, seed
from oracle import streams as oracle
from oracle.accounting import MP, Real, real

from modicum.accounting.grid import RHO
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.binary_tree import tree_square
from modicum.accounting.mechanisms.matrix_factorization import square_root, toeplitz
from modicum.core.rationals import LOSS_UNIT

pytestmark = pytest.mark.soak

#: What the oracle's sums leave uncertain.
NOISE = MP.mpf(10) ** -40
#: One unit in the last place of the ledger.
UNIT = MP.mpf(1) / LOSS_UNIT


@dataclass(frozen=True)
class Stream:
    """A stream, its matrix, and the loss that is charged."""

    name: str
    rows: oracle.Rows
    participations: int
    separation: int
    change: Fraction
    sigma: Fraction
    rho: Fraction
    falling: bool = True

    def truth(self) -> Real:
        """The loss of the worst change, by numbers; vectors move no less."""
        square = oracle.largest_by_signs(
            self.rows, self.participations, self.separation
        )
        return real(self.change / self.sigma) ** 2 * square / 2

    def slack(self) -> Real:
        """How much more is charged; nothing may be below the truth."""
        truth = self.truth()
        assert real(self.rho) >= truth * (1 - NOISE), self
        return real(self.rho) / truth


def drawn(random: Random) -> Stream:
    """Draw a stream of any kind, priced as a release prices it."""
    steps = random.randint(1, 11)
    most = min(steps, 5)
    pattern = {
        "participations": Fraction(random.randint(1, most)),
        "separation": Fraction(random.choice([1, 1, 2, 3, random.randint(1, steps)])),
    }
    change = Fraction(random.randint(1, 50), random.randint(1, 9))
    sigma = Fraction(random.randint(1, 99), random.randint(1, 9))
    name = random.choice(
        ["binary-tree", "square-root-factorization", "matrix-factorization", "signs"]
    )
    kind = RELEASE_KINDS["matrix-factorization" if name == "signs" else name]
    coefficients: tuple[Fraction, ...] = ()
    falling = name != "signs"
    if kind.of_list is not None:
        length = random.randint(1, steps + 1)
        numbers = [Fraction(random.randint(0, 30), 7) for _ in range(length)]
        numbers[0] += 1
        coefficients = tuple(sorted(numbers, reverse=True) if falling else numbers)
    shown = [
        real(one) * (1 if falling else random.choice([1, -1])) for one in coefficients
    ]
    rows = {
        "binary-tree": lambda: oracle.tree(steps),
        "square-root-factorization": lambda: oracle.toeplitz(
            oracle.square_root(steps), steps
        ),
    }.get(name, lambda: oracle.toeplitz(shown, steps))()
    values = {
        **kind.defaults,
        **pattern,
        "steps": Fraction(steps),
        "sigma": sigma,
        "sensitivity": change,
    }
    curve = (
        kind.build(values)
        if kind.of_list is None
        else kind.of_list(coefficients, values)
    )
    assert isinstance(curve.rho, Fraction)
    assert curve.mu2 == 2 * curve.rho
    assert Fraction(curve.loss().coordinates[RHO], LOSS_UNIT) >= curve.rho
    most_steps, apart = (int(value) for value in pattern.values())
    return Stream(name, rows, most_steps, apart, change, sigma, curve.rho, falling)


@pytest.mark.spec("REL-18")
def test_no_price_is_below_any_change_and_falling_ones_are_exact() -> None:
    random = Random(f"streams {seed()}")
    slacks: dict[str, list[Real]] = {}
    for _ in range(counted(100)):
        one = drawn(random)
        slack = one.slack()
        slacks.setdefault(one.name, []).append(slack)
        exact = one.separation == 1 if one.name == "binary-tree" else one.falling
        if exact:
            assert slack <= 1 + MP.mpf(10) ** -25, one
    for name, found in sorted(slacks.items()):
        mean, worst = MP.fsum(found) / len(found), max(found)
        print(
            f"{name}: {len(found)} streams, slack in rho"
            f" {MP.nstr(mean, 8)} in the mean, {MP.nstr(worst, 8)} at worst"
        )
    assert len(slacks) == 4


@pytest.mark.parametrize("part", [Fraction(1, 2), Fraction(999_999, 10**6)])
def test_the_comparison_finds_a_sensitivity_that_is_too_small(part: Fraction) -> None:
    random, found, exact = Random(f"halves {seed()}"), 0, 0
    for _ in range(40):
        one = drawn(random)
        if one.slack() > 1 + MP.mpf(10) ** -25:
            continue
        exact += 1
        less = Stream(**{**vars(one), "rho": one.rho * part**2})
        try:
            less.slack()
        except AssertionError:
            found += 1
    assert found == exact >= 20


def squares(
    steps: int,
) -> list[tuple[Callable[[int, int], Fraction | int], oracle.Rows]]:
    """The square of each kind of stream, by participations and separation."""
    numbers = tuple(Fraction(4, 4 + m) for m in range(steps))
    return [
        (
            lambda k, b: tree_square(steps=steps, participations=k, separation=b),
            oracle.tree(steps),
        ),
        (
            lambda k, b: square_root(steps=steps, participations=k, separation=b),
            oracle.toeplitz(oracle.square_root(steps), steps),
        ),
        (
            lambda k, b: toeplitz(numbers, steps=steps, participations=k, separation=b),
            oracle.toeplitz([real(one) for one in numbers], steps),
        ),
    ]


@pytest.mark.parametrize("steps", [1, 2, 5, 8, 9])
def test_every_pattern_of_short_streams(steps: int) -> None:
    """Bounds that vectors of any dimension cannot exceed, and nearly reached."""
    for number, (square, rows) in enumerate(squares(steps)):
        for participations in range(1, steps + 1):
            for separation in range(1, steps + 1):
                truth = oracle.largest_by_entries(rows, participations, separation)
                found = real(Fraction(square(participations, separation)))
                assert found >= truth * (1 - NOISE)
                if number or separation == 1:
                    assert found <= truth * (1 + MP.mpf(10) ** -25)
                assert found <= truth * MP.mpf("1.41")


def test_a_change_of_vectors_moves_no_more_than_is_charged() -> None:
    random = Random(f"vectors {seed()}")
    steps, dimension = 7, 3
    for square, rows in squares(steps):
        for participations, separation in ((2, 1), (3, 2), (7, 1), (2, 3)):
            most = real(Fraction(square(participations, separation)))
            for one in oracle.sets_of_steps(steps, participations, separation):
                changes = [unit_vector(random, dimension) for _ in one]
                square_moved = MP.fsum(
                    oracle.moved(
                        rows,
                        {step: by[axis] for step, by in zip(one, changes, strict=True)},
                    )
                    for axis in range(dimension)
                )
                assert square_moved <= most * (1 + NOISE)


def unit_vector(random: Random, dimension: int) -> list[Real]:
    numbers = [MP.mpf(random.gauss(0, 1)) for _ in range(dimension)]
    norm = MP.sqrt(MP.fsum(one**2 for one in numbers))
    return [one / norm for one in numbers]


def test_the_square_root_is_one() -> None:
    steps = 12
    rows = oracle.toeplitz(oracle.square_root(steps), steps)
    for i in range(steps):
        for j in range(steps):
            entry = MP.fsum(rows[i][m] * rows[m][j] for m in range(steps))
            assert abs(entry - (1 if i >= j else 0)) < NOISE


def test_long_streams_are_quick_and_cost_what_their_columns_say() -> None:
    assert tree_square(steps=10_000, participations=1, separation=1) == 14
    assert tree_square(steps=2**20, participations=1, separation=1) == 21
    column = oracle.square_root(2_000)
    norm = MP.fsum(one**2 for one in column)
    found = real(square_root(steps=2_000, participations=1, separation=1))
    assert norm <= found <= norm * (1 + MP.mpf(10) ** -25)

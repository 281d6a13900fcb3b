"""Prices of selections and trainings in releases: their losses, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from oracle import mechanisms as oracle
from oracle.accounting import MP, Real, real
from oracle.mechanisms import worse_way
from samples.user_visits import WORDS, priced, words

import modicum as mo
from modicum.accounting import INFINITE, Loss
from modicum.accounting.curves import composed
from modicum.accounting.grid import EPS, RHO, order_index
from modicum.accounting.mechanisms import ACCOUNT_KINDS
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT
from modicum.release import Relation, Vocabulary, parse_release, price

NOISE = MP.mpf(10) ** -15
#: Orders of the grid at which losses are compared.
ORDERS = (Fraction(2), Fraction(8))


TRAINING = mo.dp_sgd(
    attributes=[],
    noise_multiplier=1,
    steps=10,
    sampling={"unit": "user", "rate": Fraction(1, 100)},
)


def problem(mechanism: dict[str, Any], vocabulary: Vocabulary = WORDS) -> Problem:
    with pytest.raises(InputError) as caught:
        priced(mechanism, vocabulary)
    return caught.value.problems[0]


def at(loss: Loss, index: int) -> Real:
    assert loss.coordinates[index] < INFINITE
    return real(Fraction(loss.coordinates[index], LOSS_UNIT))


def assert_covers(loss: Loss, p: list[Real], q: list[Real]) -> None:
    """No coordinate is below that of the two laws of the outcomes."""
    assert at(loss, EPS) >= oracle.largest_ratio(p, q) - NOISE
    for order in ORDERS:
        truth = worse_way(p, q, order)
        assert at(loss, order_index(order)) >= truth - NOISE
        assert at(loss, RHO) >= truth / real(order) - NOISE


SIZES = [Fraction(1, 3), Fraction(1), Fraction(5, 2)]


@pytest.mark.parametrize("size", SIZES)
def test_choices_by_score_cover_every_change_of_scores(size: Fraction) -> None:
    eps = Fraction(4, 5)
    given: Any = {"eps": eps, "sensitivity": {"user": mo.linf(size)}}
    exponential = priced(mo.exponential(attributes=[], **given))
    flip = priced(mo.report_noisy_max(attributes=[], permute_and_flip=True, **given))
    for scores in product([0, 2], repeat=3):
        for signs in product([-1, 0, 1], repeat=3):
            near = [s + size * c for s, c in zip(scores, signs, strict=True)]
            before = [Fraction(score) for score in scores]
            for one, law in (
                (exponential, oracle.exponential),
                (flip, oracle.permute_and_flip),
            ):
                assert_covers(one.losses["user"], law(before, eps), law(near, eps))


@pytest.mark.parametrize("size", SIZES)
def test_the_largest_noisy_score_covers_scores_that_rise_and_fall(
    size: Fraction,
) -> None:
    eps = Fraction(4, 5)
    scale = 2 / real(eps)
    one = priced(
        mo.report_noisy_max(attributes=[], eps=eps, sensitivity={"user": mo.linf(size)})
    )
    noise = oracle.laplace_density(scale), oracle.laplace_below(scale)
    for change in ([1, -1], [1, 0], [-1, 1]):
        left = [MP.mpf(0), MP.mpf(1)]
        right = [s + real(size) * c for s, c in zip(left, change, strict=True)]
        p, q = (
            oracle.noisy_max(scores, *noise, 60 * scale) for scores in (left, right)
        )
        assert_covers(one.losses["user"], p, q)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("positives", [1, 2])
def test_sparse_vector_covers_its_transcripts(size: int, positives: int) -> None:
    one = priced(
        mo.sparse_vector(
            attributes=[],
            eps_threshold=Fraction(1, 2),
            eps_queries=Fraction(1),
            positives=positives,
            sensitivity={"user": mo.linf(size)},
        )
    )
    for signs in ([1, -1], [-1, 1], [-1, -1]):
        laws = [
            oracle.sparse_vector(answers, MP.mpf(2), MP.mpf(2), positives, fresh=True)
            for answers in ([0, 0], [size * sign for sign in signs])
        ]
        p, q = (list(law.values()) for law in laws)
        assert_covers(one.losses["user"], p, q)


def test_votes_cost_the_square_of_the_teachers() -> None:
    given = {"user": mo.teachers(3)}
    one = priced(mo.pate_gnmax(attributes=[], sigma=40, sensitivity=given))
    assert Fraction(one.losses["user"].coordinates[RHO], LOSS_UNIT) == Fraction(9, 1600)
    assert one.losses["user"].coordinates[EPS] >= INFINITE


def test_training_is_for_the_sampled_unit_and_derived_for_others() -> None:
    one = priced(TRAINING)
    values = {
        "noise-multiplier": Fraction(1),
        "sampling-rate": Fraction(1, 100),
        "steps": Fraction(10),
    }
    curve = composed([(ACCOUNT_KINDS["dp-sgd"].build(values), 1)])
    assert one.losses["user"] == curve.loss()
    assert one.sources == {"user": "computed", "visit": "2 x user"}
    for order in ORDERS:
        truth = 10 * max(oracle.gaussian_step(Fraction(1, 100), Fraction(1), order))
        assert at(one.losses["user"], order_index(order)) >= truth - NOISE


@pytest.mark.parametrize("relation", ["substitute", "any-change"])
def test_training_is_refused_under_other_relations(relation: Relation) -> None:
    found = problem(TRAINING, words(user=relation))
    assert found.code is Code.COST_NOT_DERIVABLE
    assert "cost" in found.help


@pytest.mark.parametrize("left_out", ["sampling", "steps", "noise-multiplier"])
def test_training_needs_all_of_its_parameters(left_out: str) -> None:
    less = {key: value for key, value in TRAINING.items() if key != left_out}
    found = problem(less)
    assert found.code is Code.MISSING_KEY
    assert f"`{left_out}`" in found.message


def test_votes_need_the_number_of_teachers() -> None:
    found = problem(mo.pate_gnmax(attributes=[], sigma=40))
    assert found.code is Code.MISSING_KEY
    assert "teachers" in found.help
    half = {"user": mo.teachers(1.5)}  # type: ignore[arg-type]
    found = problem(mo.pate_gnmax(attributes=[], sigma=40, sensitivity=half))
    assert found.code is Code.OUT_OF_RANGE


CHOICE: dict[str, Any] = mo.exponential(
    attributes=[], eps=1, sensitivity={"user": mo.linf(1)}
)
VOTE: dict[str, Any] = mo.pate_gnmax(
    attributes=[], sigma=40, sensitivity={"user": mo.teachers(1)}
)
QUERIES: dict[str, Any] = mo.sparse_vector(
    attributes=[], eps_threshold=1, eps_queries=1, sensitivity={"user": mo.linf(1)}
)


@pytest.mark.parametrize(
    ("mechanism", "key", "value"),
    [
        (TRAINING, "steps", 0),
        (TRAINING, "steps", Fraction(3, 2)),
        (TRAINING, "noise-multiplier", 0),
        (TRAINING, "sampling", {"unit": "user", "rate": 0}),
        (TRAINING, "sampling", {"unit": "user", "rate": 1}),
        (CHOICE, "eps", 0),
        (CHOICE, "sensitivity", {"user": {"linf": 0}}),
        (QUERIES, "positives", 0),
        (QUERIES, "eps-queries", -1),
        (VOTE, "sensitivity", {"user": {"teachers": 0}}),
    ],
)
def test_what_costs_nothing_or_is_no_number_of_steps_is_refused(
    mechanism: dict[str, Any], key: str, value: object
) -> None:
    assert problem(mechanism | {key: value}).code is Code.OUT_OF_RANGE


def test_sensitivities_are_in_the_norm_of_their_kind() -> None:
    for one in (CHOICE, QUERIES, VOTE):
        for norm in {"l1", "l2", "linf", "teachers"} - one["sensitivity"][
            "user"
        ].keys():
            found = problem(one | {"sensitivity": {"user": {norm: 1}}})
            assert found.code in {Code.MISSING_KEY, Code.UNKNOWN_KEY}
    found = problem(TRAINING | {"sensitivity": {"user": {"l2": 1}}})
    assert found.code is Code.UNKNOWN_KEY
    assert "`sampling`" in found.help


def test_the_number_of_teachers_multiplies_rho_by_its_square() -> None:
    """A unit that reaches more teachers is not less than so many single ones."""
    for teachers in (1, 2, 1000):
        moved = {"user": mo.teachers(teachers)}
        rho = priced(VOTE | {"sensitivity": moved}).losses["user"].coordinates[RHO]
        assert rho == teachers**2 * LOSS_UNIT // 1600


@pytest.mark.parametrize("mechanism", [VOTE, TRAINING])
def test_no_pure_eps_is_claimed_for_votes_and_trainings(
    mechanism: dict[str, Any],
) -> None:
    found = problem({**mechanism, "cost": {"visit": {"eps": 1}}})
    assert found.code is Code.COST_TOO_LOW
    assert found.message.startswith("no pure eps is proven")


def test_what_a_vote_assumes_is_named() -> None:
    found = problem(mo.pate_gnmax(attributes=[], sigma=40))
    assert "disjoint" in found.notes[0]


def test_a_training_may_have_the_sample_of_its_release() -> None:
    below = {key: value for key, value in TRAINING.items() if key != "sampling"}
    above = {"release": "r", "mechanisms": [below], "sampling": TRAINING["sampling"]}
    release = parse_release(from_python(above), WORDS)
    assert price(release, WORDS).mechanisms[0].losses == priced(TRAINING).losses


def test_votes_are_not_amplified() -> None:
    found = problem(
        mo.pate_gnmax(
            attributes=[],
            sigma=40,
            sensitivity={"user": mo.teachers(1)},
            sampling={"unit": "user", "rate": Fraction(1, 2)},
        )
    )
    assert found.code is Code.NOT_SUPPORTED


@pytest.mark.parametrize(
    "kind", ["exponential", "permute-and-flip", "report-noisy-max", "sparse-vector"]
)
def test_a_declared_cost_is_enough(kind: str) -> None:
    one = priced({"mechanism": kind, "attributes": [], "cost": {"user": {"eps": 1}}})
    assert one.sources["user"] == "declared"


def test_eps_of_a_choice_is_a_parameter_and_not_calibrated() -> None:
    """Noise that is found from an eps takes a tenth of a second; this takes none."""
    one = mo.exponential(attributes=[], sensitivity={"user": mo.linf(1)}, eps=1)
    mechanisms = [{**one, "name": f"n{n}"} for n in range(101)]
    node = from_python({"release": "r", "mechanisms": mechanisms})
    assert len(parse_release(node, WORDS).mechanisms) == 101

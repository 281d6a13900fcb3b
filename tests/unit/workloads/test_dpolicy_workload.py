"""The scenarios S1 to S3: labels as published, in the words of the example policies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from modicum.core.document import from_python
from modicum.core.errors import Code, InputError
from modicum.policy.compiler import compile_text
from modicum.release import parse_release, price
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.dpolicy import (
    ATTRIBUTES,
    ROUNDS,
    SCENARIOS,
    all_memberships,
    dpolicy,
    month_of,
    risk_of,
    weights,
)
from modicum.workloads.model import Labels, Workload
from modicum.workloads.releases import release_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "dpolicy"


def labels(workload: Workload) -> Labels:
    assert workload.requests.labels is not None
    return workload.requests.labels


def read_by(workload: Workload) -> list[tuple[int, ...]]:
    own = labels(workload)
    return [own.attributes_of(one) for one in range(len(own))]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_w4_with_labels(name: str) -> None:
    recipe = Recipe(seed=1, rounds=ROUNDS)
    base, own = cohere("w4", recipe), dpolicy(name, recipe)
    assert own.rounds == ROUNDS == 20
    assert list(own.round_numbers) == list(range(11, 31))
    for column in ("id", "round", "type", "first", "width", "utility"):
        expected = getattr(base.requests, column).tolist()
        assert getattr(own.requests, column).tolist() == expected
    assert base.requests.labels is None


def test_s1_most_models_only_answer_queries() -> None:
    workload = dpolicy("s1")
    own, requests = labels(workload), workload.requests
    assert own.black_box.mean() == pytest.approx(0.8 / 3, abs=0.02)
    for one in np.flatnonzero(own.black_box).tolist():
        assert requests.of_type(one).mechanism in {"dp-sgd", "pate"}
    assert set(read_by(workload)) == {(0,)}


def test_s2_reads_attributes_as_measured() -> None:
    read = read_by(dpolicy("s2", Recipe(seed=2, rounds=40)))
    assert all(list(one) == sorted(set(one)) for one in read)
    assert np.mean([len(one) for one in read]) == pytest.approx(3.99, abs=0.1)
    assert np.mean([9 in one for one in read]) == pytest.approx(0.415, abs=0.02)
    touched = [any(risk_of(number) == "high" for number in one) for one in read]
    assert np.mean(touched) == pytest.approx(0.497, abs=0.02)
    counts = np.bincount([len(one) for one in read], minlength=5)
    assert counts[1:5] / len(read) == pytest.approx(
        [0.25, 0.1875, 0.1406, 0.1055], abs=0.02
    )


def test_s2_weighs_attributes_by_zipfs_law_in_each_risk_level() -> None:
    own = weights()
    assert own.sum() == pytest.approx(1)
    assert own[[0, 8, 9]] == pytest.approx([0.138] * 3, abs=0.001)
    level = {
        risk: sum(own[n] for n in range(ATTRIBUTES) if risk_of(n) == risk)
        for risk in ("low", "medium", "high")
    }
    expected = {"low": 0.637, "medium": 0.181, "high": 0.181}
    assert level == pytest.approx(expected, abs=0.001)
    assert own[19] / own[9] == pytest.approx(1 / 11)


def test_s2_draws_without_putting_back() -> None:
    """Of pairs, the second is drawn by the weights that are left."""
    own = weights()
    read = read_by(dpolicy("s2", Recipe(seed=3, rounds=100)))
    pairs = [one for one in read if len(one) == 2]
    both = np.mean([one == (0, 9) for one in pairs])
    chance = own[0] * own[9] * (1 / (1 - own[0]) + 1 / (1 - own[9]))
    assert both == pytest.approx(chance, abs=4.5 * (chance / len(pairs)) ** 0.5)


def test_s3_reads_months_around_the_present() -> None:
    workload = dpolicy("s3", Recipe(seed=4, rounds=40))
    offsets = labels(workload).month - month_of(workload.requests.round)
    counts = np.bincount(offsets + 4, minlength=7) / len(offsets)
    expected = [1 / 9, 1 / 9, 1 / 9, 1 / 9, 3 / 9, 1 / 9, 1 / 9]
    assert counts == pytest.approx(expected, abs=0.015)
    read = read_by(workload)
    assert set(read) == {(0,), (0, 1)}
    assert np.mean([len(one) == 2 for one in read]) == pytest.approx(0.5, abs=0.02)


def test_a_month_has_four_rounds() -> None:
    months = month_of(np.arange(11, 31)).tolist()
    assert months == [104] * 4 + [105] * 4 + [106] * 4 + [107] * 4 + [108] * 4
    for name in ("s1", "s2"):
        workload = dpolicy(name)
        present = month_of(workload.requests.round)
        assert labels(workload).month.tolist() == present.tolist()


def test_the_schema_of_s2_is_that_of_the_policy() -> None:
    text = (EXAMPLES / "s2.yaml").read_bytes()
    policy = compile_text(text, "s2.yaml").policy
    assert len(policy.attributes) == len(all_memberships()) == ATTRIBUTES
    for number, joined in enumerate(all_memberships()):
        attribute = policy.attributes[f"a{number}"]
        assert attribute.risk == risk_of(number)
        named = {f"c{category}": level for category, level in joined.items()}
        assert attribute.memberships is not None
        levels = {name: one.value for name, one in attribute.memberships.items()}
        assert levels == named


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_policy_of_a_scenario_prices_its_requests(name: str) -> None:
    text = (EXAMPLES / f"{name}.yaml").read_bytes()
    vocabulary = compile_text(text, f"{name}.yaml").policy.vocabulary
    workload = dpolicy(name, Recipe(rounds=1))
    for one in range(0, len(workload.requests), 25):
        release = parse_release(from_python(release_of(workload, one)), vocabulary)
        (mechanism,) = price(release, vocabulary).mechanisms
        assert mechanism.losses["user"].coordinates[0] > 0
        expected = "black-box" if labels(workload).black_box[one] else "none"
        assert mechanism.labels.get("ml", "none") == expected


RING = b"""
modicum: policy/v1
name: ring
dp: {neighbors: add-remove}
units:
  user: {id: user_id}
population:
  partition_by:
    place: {range: [0, 204799], immutable: [user]}
schema:
  attributes: {a0: low}
policies:
  - {name: total, when: "true", unit: user, budget: {eps: 3, delta: 1e-7}}
"""


def test_a_release_reads_the_part_of_its_request() -> None:
    vocabulary = compile_text(RING, "ring.yaml").policy.vocabulary
    workload = cohere("w4", Recipe(rounds=1))
    requests = workload.requests
    ends = requests.first + requests.width
    over = np.flatnonzero(ends > workload.domain).tolist()
    within = np.flatnonzero(ends < workload.domain).tolist()
    for one in (*over[:5], *within[:5]):
        described = release_of(workload, one, partition="place")
        release = parse_release(from_python(described), vocabulary)
        first, width = int(requests.first[one]), int(requests.width[one])
        last = first + width - 1
        whole = {"from": 0, "to": last - workload.domain}
        spans = [{"from": first, "to": min(last, workload.domain - 1)}]
        spans = [whole, *spans] if last >= workload.domain else spans
        expected: dict[str, object] = {
            **described,
            "mechanisms": [
                {**requests.of_type(one).described("user"), "where": {"place": spans}}
            ],
        }
        again = parse_release(from_python(expected), vocabulary)
        assert release.mechanisms[0].part == again.mechanisms[0].part
        assert release.mechanisms[0].part.where is not None


def test_a_release_of_the_whole_ring_says_no_part() -> None:
    workload = cohere("w4")
    (one, *_) = np.flatnonzero(workload.requests.width == workload.domain).tolist()
    (mechanism,) = cast(
        "list[dict[str, object]]",
        release_of(workload, one, partition="place")["mechanisms"],
    )
    assert "where" not in mechanism


def test_labels_do_not_move_with_each_other() -> None:
    recipe = Recipe(seed=5, rounds=4)
    fewer = read_by(dpolicy("s2", replace(recipe, rounds=2)))
    assert read_by(dpolicy("s2", recipe))[: len(fewer)] == fewer


def test_requests_are_chosen_with_their_labels() -> None:
    workload = dpolicy("s2", Recipe(seed=6, rounds=2))
    chosen = workload.requests.of_round(12)
    assert chosen.labels is not None
    assert chosen.labels.month.tolist() == [104] * len(chosen)
    read = read_by(workload)
    picked = [chosen.labels.attributes_of(one) for one in range(len(chosen))]
    assert picked == [read[number] for number in chosen.id.tolist()]
    backward = workload.requests.chosen(np.arange(9, -1, -1))
    assert backward.labels is not None
    assert [backward.labels.attributes_of(one) for one in range(10)] == read[9::-1]
    nothing = workload.requests.chosen(np.array([], dtype=np.int64))
    assert len(nothing) == 0


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        dpolicy("s4")
    assert caught.value.code is Code.UNKNOWN_CHOICE

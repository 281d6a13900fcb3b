"""Trainings by Opacus under a reservation: within it by every accountant there is.

Opacus is heavy, and not in every environment: MODICUM_OPACUS=required makes its absence
a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from samples.small import workspace

from modicum.accounting.budgets import ApproxBudget, RenyiBudget
from modicum.accounting.calibration import meets
from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
)
from modicum.integrations.loader import Adapters
from modicum.integrations.opacus_noise import Steps, curve_of, divergences, noise_for

if os.environ.get("MODICUM_OPACUS") != "required":
    pytest.importorskip("opacus")

torch: Any = import_module("torch")
data: Any = import_module("torch.utils.data")
accountants: Any = import_module("opacus.accountants")

pytestmark = pytest.mark.filterwarnings(
    "ignore:Full backward hook is firing", "ignore:Optimal order is"
)

EPS, DELTA = Fraction(3, 2), Fraction(1, 10**8)
BUDGET = ApproxBudget(EPS, DELTA)


def release(cost: Any, kind: str = "declared") -> dict[str, Any]:
    return {
        "release": "t-1",
        "mechanisms": [
            {
                "name": "sgd",
                "mechanism": kind,
                "attributes": ["age"],
                "cost": {"user": cost},
            }
        ],
    }


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    found = workspace(tmp_path)
    assert found.submit(release({"eps": EPS, "delta": DELTA})).allowed
    return found


@pytest.fixture
def use(ws: Workspace) -> Use:
    return Use(ws, "t-1", Adapters())


def parts(rows: int = 60, batch: int = 20, **more: Any) -> tuple[Any, Any, Any]:
    features = torch.randn(rows, 4)
    rows_of = data.TensorDataset(features, (features[:, 0] > 0).long())
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, data.DataLoader(rows_of, batch_size=batch, **more)


def begin(use: Use, *, epochs: int = 2, **more: Any) -> Any:
    return use.opacus("sgd").make_private(
        *parts(**more), epochs=epochs, max_grad_norm=1
    )


def step(training: Any, batch: Any) -> None:
    features, classes = batch
    training.optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(training.module(features), classes)
    loss.backward()
    training.optimizer.step()


def status(ws: Workspace) -> str:
    return ws.standing("t-1").status.value


# --- a training ---------------------------------------------------------------------


def test_a_training_appears_with_no_less_than_opacus_reports(
    ws: Workspace, use: Use
) -> None:
    with use:
        training = begin(use)
        before = parameters(training)
        for batch in training.batches():
            step(training, batch)
        report = training.report()
    assert status(ws) == "published"
    assert (report.steps, report.steps_reserved, training.steps_left) == (6, 6, 0)
    pairs = zip(before, parameters(training), strict=True)
    assert not all(torch.equal(one, other) for one, other in pairs)
    charged = ws.release_of(ws.standing("t-1")).mechanisms[0].losses["user"].coordinates
    reserved = Fraction(charged[0], 10**12)
    assert reserved == EPS
    assert Fraction(charged[-1], 10**18) == DELTA
    for accountant in (accountants.RDPAccountant(), accountants.PRVAccountant()):
        accountant.history = [(report.noise_multiplier, 1 / 3, 6)]
        assert Fraction(float(accountant.get_epsilon(float(DELTA)))) <= reserved
    figures = report.epsilons
    assert figures.opacus_prv is not None
    assert 0 < figures.own <= reserved
    assert 0 < figures.opacus_rdp <= reserved
    assert 0 < figures.opacus_prv <= reserved
    # And not much is left over: noise would be wasted.
    assert max(figures.own, figures.opacus_rdp, figures.opacus_prv) > reserved * 0.98


def test_an_early_end_is_posted_and_gives_nothing_back(ws: Workspace, use: Use) -> None:
    with use:
        training = begin(use)
        step(training, next(iter(training.batches())))
        report = training.report()
    assert (report.steps, report.steps_reserved) == (1, 6)
    assert 0 < report.epsilons.own < EPS
    charged = ws.release_of(ws.standing("t-1")).mechanisms[0].losses["user"]
    assert Fraction(charged.coordinates[0], 10**12) == EPS


def parameters(training: Any) -> list[Any]:
    return [one.detach().clone() for one in training.module.parameters()]


def one_step_too_many(use: Use) -> None:
    with use:
        training = begin(use, epochs=1)
        batch = None
        for batch in training.batches():
            step(training, batch)
        assert not list(training.batches())
        before = parameters(training)
        try:
            step(training, batch)
        finally:
            pairs = zip(before, parameters(training), strict=True)
            assert all(torch.equal(one, other) for one, other in pairs)


def a_step_with_another_batch(use: Use) -> None:
    with use:
        training = begin(use)
        step(training, next(batches(training)))
        step(training, (torch.ones(3, 4), torch.zeros(3).long()))


def less_noise(use: Use) -> None:
    with use:
        training = begin(use)
        training.optimizer.noise_multiplier /= 2
        step(training, next(batches(training)))


def another_account(use: Use) -> None:
    with use:
        training = begin(use)
        step(training, next(batches(training)))
        training._course.accountant.history.append((0.1, 1 / 3, 5))


def batches(training: Any) -> Iterator[Any]:
    return iter(training.batches())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (one_step_too_many, "all reserved steps were already made"),
        (a_step_with_another_batch, "each step needs a new batch"),
        (less_noise, "noise was changed"),
        (another_account, "Opacus counted a different number of steps"),
    ],
)
def test_a_training_goes_as_reserved_or_is_not_posted(
    ws: Workspace, use: Use, script: Callable[[Use], None], said: str
) -> None:
    with pytest.raises(ConflictError, match=said):
        script(use)
    assert status(ws) == "started"


def test_nothing_is_drawn_after_the_block(use: Use) -> None:
    with use:
        training = begin(use)
        drawn = batches(training)
        batch = next(drawn)
    with pytest.raises(ConflictError, match="after the block"):
        next(drawn)
    with pytest.raises(ConflictError, match="after the block"):
        step(training, batch)


def test_one_training_is_reserved(use: Use) -> None:
    adapter = use.opacus("sgd")
    with pytest.raises(ConflictError, match="before the block"):
        adapter.make_private(*parts(), epochs=1, max_grad_norm=1)
    with use:
        begin(use)
        with pytest.raises(ConflictError, match="has already run"):
            begin(use)


# --- what Opacus can be talked into -------------------------------------------------


def test_samples_are_poisson_by_numbers_nobody_chose(use: Use) -> None:
    torch.manual_seed(7)
    with use:
        training = begin(use, rows=400, batch=40)
        seeds = {
            training.optimizer.generator.initial_seed(),
            training._loader.batch_sampler.generator.initial_seed(),
        }
        sizes = [len(batch[0]) for batch in training.batches()]
    assert len(seeds) == 2
    assert 7 not in seeds
    assert len(sizes) == 20
    assert len(set(sizes)) > 1  # Batches of one size would be no samples.


@pytest.mark.parametrize(
    "more",
    [
        {"poisson_sampling": False},
        {"noise_generator": None},
        {"noise_multiplier": 0.1},
        {"clipping": "adaptive"},
        {"rand_on_empty": True},
        {"grad_sample_mode": "ghost"},
        {"loss_reduction": "max"},
    ],
)
def test_what_could_cost_more_cannot_be_given(use: Use, more: dict[str, Any]) -> None:
    (name,) = more
    with pytest.raises(InputError, match=name) as caught, use:
        use.opacus("sgd").make_private(*parts(), epochs=1, max_grad_norm=1, **more)
    assert caught.value.code is Code.NOT_SUPPORTED


def test_a_loader_with_known_numbers_is_refused(use: Use) -> None:
    with pytest.raises(InputError, match="has its own generator"), use:
        begin(use, generator=torch.Generator().manual_seed(1))


def test_a_loader_without_a_length_is_refused(use: Use) -> None:
    kind: Any = data.IterableDataset
    endless: Any = type("Endless", (kind,), {"__iter__": lambda _: iter(())})
    model, optimizer, _ = parts()
    with pytest.raises(InputError, match="is unknown"), use:
        use.opacus("sgd").make_private(
            model, optimizer, data.DataLoader(endless()), epochs=1, max_grad_norm=1
        )


def test_a_failure_tells_nothing_of_the_data(ws: Workspace, use: Use) -> None:
    def read(rows: Any, index: int) -> Any:
        raise ValueError("987654321")

    broken: Any = type("Broken", (data.TensorDataset,), {"__getitem__": read})
    model, optimizer, _ = parts()
    loader = data.DataLoader(broken(torch.ones(40, 4)), batch_size=20)
    with pytest.raises(ModicumError) as caught, use:
        use.opacus("sgd").make_private(
            model, optimizer, loader, epochs=1, max_grad_norm=1
        )
    assert "987654321" not in caught.value.render()
    assert caught.value.__context__ is None
    assert status(ws) == "started"


# --- what is reserved ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "kind"),
    [
        ({"eps": 0.5}, "declared"),
        ({"rho": 0.01}, "declared"),
        ({"rho": 0.01}, "gaussian"),
    ],
)
def test_only_what_a_training_can_fit_is_taken(
    tmp_path: Path, cost: Any, kind: str
) -> None:
    ws = workspace(tmp_path)
    assert ws.submit(release(cost, kind)).allowed
    with pytest.raises(InputError, match="no training fits"):
        Use(ws, "t-1", Adapters()).opacus("sgd")
    assert status(ws) == "reserved"


@pytest.mark.parametrize(
    "budget",
    [
        BUDGET,
        ApproxBudget(Fraction(8), Fraction(1, 10**5)),
        RenyiBudget(((Fraction(2), Fraction(1, 10)), (Fraction(8), Fraction(1)))),
    ],
)
@pytest.mark.parametrize("steps", [Steps(3, 6), Steps(50, 20), Steps(1, 2)])
def test_the_noise_is_enough_and_hardly_more(budget: Any, steps: Steps) -> None:
    noise = noise_for(steps, budget)
    assert meets(curve_of(steps, Fraction(noise)), budget)
    if noise <= 0.1:
        return  # With less, floats would matter.
    less = float(noise) * 0.98
    if isinstance(budget, ApproxBudget):
        by_library = accountants.RDPAccountant()
        by_library.history = [(less, 1 / steps.batches, steps.count)]
        reported = by_library.get_epsilon(float(budget.delta))
        fits = Fraction(float(reported)) <= budget.eps
    else:
        orders = tuple(order for order, _ in budget.limits)
        found = divergences(steps, less, orders)
        fits = all(found[order] <= most for order, most in budget.limits)
    assert not (fits and meets(curve_of(steps, Fraction(less)), budget))


def test_no_noise_is_enough_for_too_many_steps() -> None:
    tiny = ApproxBudget(Fraction(1, 10**9), Fraction(1, 10**12))
    with pytest.raises(InputError, match="no noise") as caught:
        noise_for(Steps(1, 10**6), tiny)
    assert caught.value.code is Code.NOTHING_FITS


def test_a_coin_of_24_bits_is_priced_as_it_falls() -> None:
    for number in (1, 3, 7, 10, 49, 93, 1000, 10**6):
        rate = 1 / number
        steps = 2**24
        # In single precision, as the sampler compares.
        threshold = torch.tensor(rate, dtype=torch.float32).double().item()
        low = int(threshold * steps)
        heads = low + (low < threshold * steps)
        assert Fraction(heads, steps) <= Steps(number, 1).rate <= 1
        assert Steps(number, 1).rate >= Fraction(rate)

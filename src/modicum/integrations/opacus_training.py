"""Trainings by Opacus under a reservation: enough noise, and counted steps.

Options of Opacus that would weaken the guarantee are fixed here: Poisson samples, one
noise, one batch for each step, and unpredictable random numbers.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modicum.accounting.budgets import ApproxBudget, RenyiBudget, budget_text
from modicum.api.ports.reservation import InUse, Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.integrations.library_errors import loaded, unquoted
from modicum.integrations.opacus_noise import (
    Budget,
    Figures,
    Steps,
    divergences,
    epsilons,
    noise_for,
)

_SEEDS = 2**63
# Other permitted arguments of Opacus: none by which an example could count for more.
_ARGUMENTS: dict[str, tuple[object, ...]] = {
    "batch_first": (True, False),
    "grad_sample_mode": ("hooks", "functorch"),
    "loss_reduction": ("mean", "sum"),
}


def budget_of(mechanism: Reserved) -> Budget:
    """Return the reserved budget of a training."""
    units = mechanism.units
    cost = mechanism.cost(units[0]) if len(units) == 1 else None
    if mechanism.kind != "declared" or not isinstance(cost, ApproxBudget | RenyiBudget):
        raise fail(
            Code.DOES_NOT_FIT,
            f"no training fits `{mechanism.name}`: it is"
            f" `{mechanism.kind}`, with a loss stated for {', '.join(units)}",
            help="reserve  mechanism: declared  with  cost: {UNIT: {eps: …, delta: …}}"
            "  or {rdp: …}, for the one unit that an example belongs to",
        )
    if mechanism.relation(units[0]) != "add-remove":
        raise fail(
            Code.DOES_NOT_FIT,
            f"Opacus protects added and removed examples; neighbors for `{units[0]}`"
            " are"
            f" `{mechanism.relation(units[0])}`",
            help="train for a unit whose neighbors are `add-remove`",
        )
    return cost


def refuse_arguments(more: dict[str, Any], loader: Any) -> None:
    """Refuse arguments with which Opacus would lose more than is priced."""
    for name in sorted(more.keys() - _ARGUMENTS.keys()):
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{name}` is not allowed for a training under a reservation",
            notes=(f"allowed are {', '.join(_ARGUMENTS)}",),
            help="leave it out",
        )
    for name, value in more.items():
        if value not in _ARGUMENTS[name]:
            raise fail(
                Code.NOT_SUPPORTED,
                f"`{name}` must be {' or '.join(map(repr, _ARGUMENTS[name]))} in a"
                " training under a reservation",
                help="leave it out",
            )
    if getattr(loader, "generator", None) is not None:
        raise fail(
            Code.NOT_SUPPORTED,
            "the loader has its own generator, whose numbers may be known",
            help="create the loader without  generator=",
        )


def sampled(loader: Any, torch: Any, steps: Steps) -> Any:
    """Return the private loader, with an unpredictable generator."""
    samplers = loaded("opacus.utils.uniform_sampler", "Opacus", "opacus")
    sampler: Any = getattr(loader, "batch_sampler", None)
    if (
        type(sampler) is not samplers.UniformWithReplacementSampler
        or len(loader) != steps.batches
        or sampler.sample_rate > 1 / steps.batches
    ):
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "this loader draws no Poisson samples: its batches are not secret",
                help="give a plain DataLoader over a dataset with a length",
            )
        )
    sampler.generator = unknown_numbers(torch, "cpu")
    return loader


def unknown_numbers(torch: Any, device: Any) -> Any:
    """Return a generator with an unpredictable seed."""
    return torch.Generator(device=device).manual_seed(secrets.randbelow(_SEEDS))


def batches_of(loader: Any) -> int:
    """Return how many batches Opacus makes of an epoch: it divides twice in floats."""
    try:
        count = len(loader)
    except TypeError:
        count = 0
    if count < 1:
        raise fail(
            Code.NOT_SUPPORTED,
            "the number of batches of this loader is unknown",
            help="give a plain DataLoader over a dataset with a length",
        )
    return int(1 / (1 / count))


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a training.

    Attributes:
        steps: How many steps were made.
        steps_reserved: How many could be.
        noise_multiplier: The noise of each.
        rate: How often an example is in a batch, at most.
        reserved: The reserved budget. An early end returns nothing.
        epsilons: The cost of the steps made, at the reserved delta; None where no delta
            is reserved.
        divergences: The same by Renyi order, as Opacus has it, where orders are
            reserved.
    """

    steps: int
    steps_reserved: int
    noise_multiplier: float
    rate: Fraction
    reserved: str
    epsilons: Figures | None
    divergences: dict[Fraction, Fraction]


class Opacus:
    """DP-SGD by Opacus as one mechanism of a reservation.

    Args:
        use: The reservation in use.
        mechanism: The mechanism: `declared`, with a cost for one unit, in eps and
            delta or in rdp.

    Raises:
        InputError: If it is not reserved so.
        UsageError: If Opacus is not installed.
    """

    def __init__(self, use: InUse, mechanism: Reserved) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._library = loaded("opacus", "Opacus", "opacus")
        self._use = use
        self._mechanism = mechanism
        self._budget = budget_of(mechanism)

    def noise(self, *, batches: int, steps: int) -> float:
        """Return the noise that a training needs. Reads nothing."""
        if min(batches, steps) < 1:
            raise fail(
                Code.OUT_OF_RANGE,
                f"a training has at least one batch and one step, got {batches} and"
                f" {steps}",
            )
        return noise_for(Steps(batches, steps), self._budget)

    def make_private(
        self,
        module: Any,
        optimizer: Any,
        data_loader: Any,
        *,
        epochs: int,
        max_grad_norm: float,
        **more: Any,
    ) -> Training:
        """Return a training within the reserved budget.

        Each example must contain all data about one instance of the unit that the cost
        is declared for, and nothing of another one.
        """
        self._use.must_run()
        refuse_arguments(more, data_loader)
        batches = batches_of(data_loader)
        steps = Steps(batches, epochs * batches)
        noise = self.noise(batches=steps.batches, steps=steps.count)
        self._use.claim(self._mechanism.name)
        engine = _quietly(lambda: self._library.PrivacyEngine(accountant="rdp"))
        torch = loaded("torch", "PyTorch", "opacus")
        device = next(module.parameters()).device
        made = _quietly(
            lambda: engine.make_private(
                module=module,
                optimizer=optimizer,
                data_loader=data_loader,
                noise_multiplier=noise,
                max_grad_norm=max_grad_norm,
                poisson_sampling=True,
                noise_generator=unknown_numbers(torch, device),
                **more,
            )
        )
        private_module, private_optimizer, private_loader = made
        training = Training(
            self._use,
            private_module,
            private_optimizer,
            sampled(private_loader, torch, steps),
            _Course(steps, noise, self._budget, engine.accountant),
        )
        self._use.before_post(training.confirm)
        return training


@dataclass(frozen=True, slots=True)
class _Course:
    """The checked parameters of a training."""

    steps: Steps
    noise: float
    budget: Budget
    accountant: Any


class Training:
    """A model in training under a reservation.

    Args:
        use: The reservation in use.
        module: The model, as Opacus wrapped it.
        optimizer: The optimizer, as Opacus wrapped it.
        loader: The loader, as Opacus made it.
        course: The reserved parameters.
    """

    def __init__(
        self, use: InUse, module: Any, optimizer: Any, loader: Any, course: _Course
    ) -> None:
        self._use = use
        self._loader = loader
        self._course = course
        self._drawn = 0
        self._done = 0
        #: The model, to be trained.
        self.module = module
        #: Its optimizer.
        self.optimizer = optimizer
        counted: Callable[[Any], None] = optimizer.step_hook
        prepared: Callable[..., Any] = optimizer.pre_step

        def count(one: Any) -> None:
            counted(one)
            self._done += 1

        def look(*given: Any) -> Any:
            self._refuse_step()
            return prepared(*given)

        optimizer.attach_step_hook(count)
        optimizer.pre_step = look

    @property
    def steps_left(self) -> int:
        """The number of remaining steps."""
        return self._course.steps.count - self._done

    def batches(self) -> Iterator[Any]:
        """Yield batch after batch, for the reserved number of steps."""
        while self._drawn < self._course.steps.count:
            self._use.must_run()
            for batch in self._loader:
                self._use.must_run()
                if self._drawn >= self._course.steps.count:
                    return
                self._drawn += 1
                yield batch

    def report(self) -> Report:
        """Return what was done, and its cost."""
        self.confirm()
        course = self._course
        done = Steps(course.steps.batches, self._done)
        budget, figures = course.budget, None
        found: dict[Fraction, Fraction] = {}
        if isinstance(budget, ApproxBudget):
            figures = epsilons(done, course.noise, budget.delta)
        else:
            orders = tuple(order for order, _ in budget.limits)
            found = divergences(done, course.noise, orders)
        return Report(
            steps=self._done,
            steps_reserved=course.steps.count,
            noise_multiplier=course.noise,
            rate=course.steps.rate,
            reserved=budget_text(budget),
            epsilons=figures,
            divergences=found,
        )

    def confirm(self) -> None:
        """Return if Opacus counted the same steps, with the same noise and rate."""
        course = self._course
        step = (course.noise, 1 / course.steps.batches, self._done)
        expected = [step] if self._done else []
        if course.accountant.history != expected or self.steps_left < 0:
            raise _other_way("Opacus counted a different number of steps than reserved")

    def _refuse_step(self) -> None:
        """Refuse a step before its noise is drawn."""
        self._use.must_run()
        if self.steps_left < 1:
            raise _other_way("all reserved steps were already made")
        if self.optimizer.noise_multiplier != self._course.noise:
            raise _other_way("the noise was changed")
        if self.optimizer.accumulated_iterations != 1 or self._drawn <= self._done:
            raise _other_way("each step needs a new batch")


def _quietly(work: Callable[[], Any]) -> Any:
    """Run a part of Opacus, without its warnings about each engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unquoted("Opacus", "preparing the training", work)


def _other_way(message: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            message,
            notes=("the release stays started, and its loss spent",),
            help="take each batch from `batches`, make one step with it, and do not"
            " change the optimizer",
        )
    )

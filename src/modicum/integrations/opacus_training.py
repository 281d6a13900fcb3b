"""Trainings by Opacus under a reservation: enough noise, and steps that are counted.

What Opacus can be talked out of, it is held to here: Poisson samples, one noise, one
batch for each step, and random numbers that nobody chose.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modicum.accounting.budgets import ApproxBudget, budget_text
from modicum.api.ports.in_use import InUse
from modicum.api.ports.reservation import Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, ConflictError, Problem
from modicum.integrations.library_errors import loaded, unquoted
from modicum.integrations.opacus_checks import (
    batches_of,
    budget_of,
    refuse_arguments,
    sampled,
    unknown_numbers,
)
from modicum.integrations.opacus_noise import (
    Budget,
    Figures,
    Steps,
    divergences,
    epsilons,
    noise_for,
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a training did.

    Attributes:
        steps: How many steps were made.
        steps_reserved: How many could be.
        noise_multiplier: The noise of each.
        rate: How often an example is in a batch, at most.
        reserved: What was reserved. An early end gives nothing back.
        epsilons: What the steps that were made cost at the reserved delta; None where
            no delta is reserved.
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
        """Return the noise that a training needs. Reads nothing.

        Args:
            batches: How many batches an epoch has.
            steps: How many steps the training makes, in all epochs together.

        Raises:
            InputError: If no noise is enough, or a number is below 1.
        """
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
        """Return a training that is within what is reserved.

        Each example must hold all that the data says about one instance of the unit
        that the cost is declared for, and nothing of another one.

        Args:
            module: The model.
            optimizer: Its optimizer.
            data_loader: A plain loader; its examples are drawn anew for each batch.
            epochs: How often all of its batches are made.
            max_grad_norm: To what length the gradient of an example is cut.
            more: `batch_first`, `grad_sample_mode` and `loss_reduction`, as
                `PrivacyEngine.make_private` takes them.

        Raises:
            ConflictError: If the mechanism ran already, or rows may not be read now.
            InputError: If the loader or a further argument cannot be used.
            UnavailableError: If Opacus fails.
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
    """What a training was found to be within the budget as."""

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
        course: What was reserved.
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
        """How many steps may still be made."""
        return self._course.steps.count - self._done

    def batches(self) -> Iterator[Any]:
        """Yield batch after batch, for as many steps as are reserved.

        Raises:
            ConflictError: If rows may not be read now.
        """
        while self._drawn < self._course.steps.count:
            self._use.must_run()
            for batch in self._loader:
                self._use.must_run()
                if self._drawn >= self._course.steps.count:
                    return
                self._drawn += 1
                yield batch

    def report(self) -> Report:
        """Return what was done, and what it costs.

        Raises:
            ConflictError: If it was not done as reserved.
        """
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
        """Return if Opacus counted the same steps, with the same noise and rate.

        Raises:
            ConflictError: If it did not.
        """
        course = self._course
        step = (course.noise, 1 / course.steps.batches, self._done)
        expected = [step] if self._done else []
        if course.accountant.history != expected or self.steps_left < 0:
            raise _other_way("Opacus counted other steps than were reserved")

    def _refuse_step(self) -> None:
        """Refuse a step before its noise is drawn."""
        self._use.must_run()
        if self.steps_left < 1:
            raise _other_way("all steps that are reserved were made")
        if self.optimizer.noise_multiplier != self._course.noise:
            raise _other_way("the noise was changed")
        if self.optimizer.accumulated_iterations != 1 or self._drawn <= self._done:
            raise _other_way("a step was to be made without a batch of its own")


def _quietly(work: Callable[[], Any]) -> Any:
    """Run a part of Opacus, without what it says about each engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unquoted("Opacus", "preparing the training", work)


def _other_way(message: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            message,
            notes=("the release stays started, and its loss spent",),
            help="take each batch from `batches`, make one step with it, and leave the"
            " optimizer as it is",
        )
    )

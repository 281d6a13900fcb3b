"""What a training by Opacus may be made of: whatever could cost more is refused."""

from __future__ import annotations

import secrets
from typing import Any

from modicum.accounting.budgets import ApproxBudget, RenyiBudget
from modicum.api.ports.reservation import Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, InputError, Problem
from modicum.integrations.library_errors import loaded
from modicum.integrations.opacus_noise import Budget, Steps

_SEEDS = 2**63
# What else may be given to Opacus: nothing by which an example could count for more.
_ARGUMENTS: dict[str, tuple[object, ...]] = {
    "batch_first": (True, False),
    "grad_sample_mode": ("hooks", "functorch"),
    "loss_reduction": ("mean", "sum"),
}


def budget_of(mechanism: Reserved) -> Budget:
    """Return what is reserved for a training.

    Args:
        mechanism: The mechanism.

    Raises:
        InputError: If no training can be made to fit it.
    """
    units = mechanism.units
    cost = mechanism.cost(units[0]) if len(units) == 1 else None
    if mechanism.kind != "declared" or not isinstance(cost, ApproxBudget | RenyiBudget):
        raise fail(
            Code.DOES_NOT_FIT,
            f"no training can be made to fit `{mechanism.name}`: it is"
            f" `{mechanism.kind}`, with a loss stated for {', '.join(units)}",
            help="reserve  mechanism: declared  with  cost: {UNIT: {eps: …, delta: …}}"
            "  or {rdp: …}, for the one unit that an example belongs to",
        )
    if mechanism.relation(units[0]) != "add-remove":
        raise fail(
            Code.DOES_NOT_FIT,
            f"Opacus protects examples that come or go; neighbors for `{units[0]}` are"
            f" `{mechanism.relation(units[0])}`",
            help="train for a unit whose neighbors are `add-remove`",
        )
    return cost


def refuse_arguments(more: dict[str, Any], loader: Any) -> None:
    """Refuse what would make Opacus lose more than is priced.

    Args:
        more: Further arguments for Opacus.
        loader: The loader that is given.

    Raises:
        InputError: If there is any of it.
    """
    for name in sorted(more.keys() - _ARGUMENTS.keys()):
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{name}` cannot be given for a training under a reservation",
            notes=(f"what can be given is {', '.join(_ARGUMENTS)}",),
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
            "the loader has a generator of its own, whose numbers somebody may know",
            help="make the loader without  generator=",
        )


def sampled(loader: Any, torch: Any, steps: Steps) -> Any:
    """Return the private loader, with a generator that nobody chose.

    Args:
        loader: What Opacus made of the loader.
        torch: The library.
        steps: The steps that were priced.

    Raises:
        InputError: If it does not draw Poisson samples at the rate that was priced.
    """
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
                "this loader draws no Poisson samples: its batches are no secret",
                help="give a plain DataLoader over a dataset with a length",
            )
        )
    sampler.generator = unknown_numbers(torch, "cpu")
    return loader


def unknown_numbers(torch: Any, device: Any) -> Any:
    """Return a generator whose seed nobody knows.

    Args:
        torch: The library.
        device: Where the numbers are drawn.
    """
    return torch.Generator(device=device).manual_seed(secrets.randbelow(_SEEDS))


def batches_of(loader: Any) -> int:
    """Return how many batches Opacus makes of an epoch: it divides twice in floats.

    Args:
        loader: A plain loader.

    Raises:
        InputError: If the loader has none, or no length.
    """
    try:
        count = len(loader)
    except TypeError:
        count = 0
    if count < 1:
        raise fail(
            Code.NOT_SUPPORTED,
            "this loader has no batches that could be counted",
            help="give a plain DataLoader over a dataset with a length",
        )
    return int(1 / (1 / count))

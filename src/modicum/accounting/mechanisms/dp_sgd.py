"""DP-SGD: steps of training, each with Gaussian noise on a fresh Poisson sample.

In a release, `sampling` names a unit and a rate. Each step draws every instance of the
unit independently with this rate, clips the sum of all that one instance contributes to
an L2 norm C, adds the instances in the sample up, and adds Gaussian noise of standard
deviation `noise-multiplier` * C in each coordinate. The sum is divided by a number that
is known before, if at all: the size of the sample is secret. All steps may be seen;
their number, and what is done with an instance, may depend on earlier steps only.

One step is the Poisson-sampled Gaussian mechanism of sensitivity 1 and noise multiplier
(Abadi et al. 2016, arXiv:1607.00133; Mironov, Talwar & Zhang 2019, arXiv:1908.10530),
for adding or removing one instance of the sampled unit, and under no other relation: an
instance that is replaced moves the sum by up to 2 C. Steps compose adaptively. For
users as the unit, this is McMahan et al. 2018 (arXiv:1710.06963). Nothing is proven for
other units but by group privacy from the sampled one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from modicum.accounting.amplification import poisson_gaussian
from modicum.accounting.curves import Curve, composed
from modicum.accounting.mechanisms.kind import (
    Kind,
    Parameter,
    Values,
    description,
    noise_size,
    whole_number,
)
from modicum.accounting.privacy_loss.pairs import sampled_gaussian_pair
from modicum.core.rationals import Number


def _build(values: Values) -> Curve:
    step = poisson_gaussian(
        sampling_rate=values["sampling-rate"],
        noise_multiplier=values["noise-multiplier"],
    )
    return composed([(step, int(values["steps"]))])


def describe_dp_sgd(
    *,
    attributes: Sequence[str],
    sampling: Mapping[str, object] | None = None,
    noise_multiplier: Number | None = None,
    steps: int | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe training by DP-SGD.

    Args:
        attributes: Attributes of the data it reads.
        sampling: `{"unit": …, "rate": …}`: each step draws the instances of this unit
            anew, and clips the whole contribution of each.
        noise_multiplier: Standard deviation of the noise over the clipping norm.
        steps: The number of steps.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> describe_dp_sgd(attributes=["age"], noise_multiplier=1)["noise-multiplier"]
        1
    """
    given = {"noise-multiplier": noise_multiplier, "steps": steps}
    return description("dp-sgd", attributes, more, sampling=sampling, **given)


KINDS = (
    Kind(
        "dp-sgd",
        (
            noise_size("noise-multiplier", "standard deviation over clipping norm"),
            Parameter("sampling-rate", "of each Poisson sample", most=Fraction(1)),
            whole_number("steps", "number of steps, each on a fresh sample", None),
        ),
        _build,
        relation="add-remove",
        measure="rho",
        repeats="steps",
        pairs=lambda v: sampled_gaussian_pair(
            v["sampling-rate"], v["noise-multiplier"], int(v["steps"])
        ),
        slips={
            "sensitivity": "it clips: its loss is for the unit of `sampling`",
            "sampling-rate": "it is the `rate` of `sampling`",
            "sigma": "its noise is `noise-multiplier`, over the clipping norm",
        },
    ),
)

"""What a report says about its own numbers, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from modicum.core.rationals import brief
from modicum.risk.choice import Choice
from modicum.risk.claims import Claim
from modicum.risk.noise import GaussianNoise, Noise
from modicum.risk.study.study import Study

#: What each claim means for whoever acts on a choice.
CLAIMS: Mapping[Claim, str] = MappingProxyType(
    {
        Claim.DP: (
            "What was chosen, or that nothing was, may be told to others. Together with"
            " a release at the chosen epsilon it loses no more privacy than what must"
            " be charged."
        ),
        Claim.ADVICE: (
            "This is advice to you, who see the data anyway. The epsilon follows from"
            " the rows without noise. A release at it is not differentially private,"
            " for any finite epsilon: whoever learns the epsilon, or that none was"
            " found, learns something of the rows. To release, choose in a way that"
            " does not read rows, or that charges what it reads."
        ),
        Claim.EXPERIMENTAL: (
            "This is for study. The algorithm was published as private, and it is known"
            " not to be so, or not proven. Nothing that it chose may be released as"
            " differentially private."
        ),
    }
)
NOT_CHARGED: Mapping[Claim, str] = MappingProxyType(
    {
        Claim.DP: "Nothing: no row was read, and nothing was chosen.",
        Claim.ADVICE: (
            "No charge would be enough: nothing is known to bound what a release at"
            " this epsilon loses."
        ),
        Claim.EXPERIMENTAL: (
            "No charge would be enough: nothing is known to bound what this algorithm"
            " loses."
        ),
    }
)
INDICATOR = (
    "The relative disclosure risk indicator (RDR) of a person is how far the noisy"
    " answer is expected to be from the answer without her rows. Here it is divided by"
    " the greatest RDR of anybody. A long bar says that a release treats people very"
    " differently: those at the top of it stand out most. A short bar says that people"
    " are alike; it does not say that they are safe. Only epsilon bounds that."
)
OWN_LOSS = (
    "A person's own {loss} bounds what the release can reveal about her, with the rows"
    " of all others held as they are. It is above that of the release for whoever moves"
    " the answer by more than the noise was made for."
)
ANY_TABLE = (
    "No row was read for these numbers: they go from somebody who does not move the"
    " answer to somebody who moves it by as much as anybody can, and hold in every"
    " table."
)
ERROR = (
    "The half width says how far the noise alone may move the answer: in 95 of 100"
    " releases it is within it, for each number of the answer on its own."
)
HISTOGRAM = (
    "Counts go up by factors of ten, so that few people are seen beside many. Mind the"
    " right end: that most people have a low number does not help those who have not."
)
GROUPS = (
    "Each group has a bar of its own, as a part of the greatest RDR of all people."
    " Groups of very different size have ends that are hard to compare: the larger one"
    " has more people who may stand out."
)
PEOPLE_BESIDE = (
    "The choice may be released, but not what this page shows of the people in the"
    " table."
)


def noise_words(noise: Noise) -> str:
    """Return what noise a release has.

    Args:
        noise: The noise.
    """
    many = noise.dimensions
    on = "the answer" if many == 1 else f"each of {many} numbers"
    sensitivity = brief(noise.sensitivity)
    if isinstance(noise, GaussianNoise):
        how = {
            "exact": "the least that is enough",
            "published": "by the classical formula",
        }[noise.calibration]
        return (
            f"Gaussian noise on {on}, {how} for epsilon and delta"
            f" {brief(noise.delta)}, given an L2 sensitivity of {sensitivity}"
        )
    return f"Laplace noise on {on}, of scale {sensitivity} divided by epsilon"


def caveats(study: Study) -> Iterator[str]:
    """Yield what else must be known.

    Args:
        study: What is reported.
    """
    yield from study.choice.caveats
    if study.choice.claim is Claim.DP and study.seen is not None:
        yield PEOPLE_BESIDE


def charged(choice: Choice) -> list[tuple[str, str]]:
    """Return what must be charged, as what it is for and the mechanism.

    Args:
        choice: The choice.
    """
    if choice.charge is None:
        return []
    found = []
    if choice.charge.selection is not None:
        selection = choice.charge.selection
        told = f"{_mechanism(selection.described())} (epsilon {brief(selection.eps)})"
        found.append(("The choice itself, whatever it finds", told))
    if choice.charge.release is not None:
        told = _mechanism(choice.charge.release)
        found.append(("A release at the chosen epsilon", told))
    return found


def _mechanism(described: Mapping[str, str]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in described.items())

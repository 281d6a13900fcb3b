"""Releases: description, parser, price.

The words that a release may use (attributes, labels, units) come from a policy as a
`Vocabulary`; an unknown word is an error, never "no rule matched".
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.release.builders import (
        ReleaseDraft,
        approx_dp,
        between,
        gdp,
        l1,
        l2,
        linf,
        pure_dp,
        teachers,
        zcdp,
    )
    from modicum.release.model import Mechanism, Release, content_digest
    from modicum.release.parser import parse_release
    from modicum.release.parts import EVERYTHING, Part, Span
    from modicum.release.population import Partition, Population
    from modicum.release.price import price
    from modicum.release.price_cache import Description, read_and_price
    from modicum.release.priced_release import PricedMechanism, PricedRelease
    from modicum.release.units import Relation, Unit, larger
    from modicum.release.vocabulary import Label, Vocabulary

__all__ = [
    "EVERYTHING",
    "Description",
    "Label",
    "Mechanism",
    "Part",
    "Partition",
    "Population",
    "PricedMechanism",
    "PricedRelease",
    "Relation",
    "Release",
    "ReleaseDraft",
    "Span",
    "Unit",
    "Vocabulary",
    "approx_dp",
    "between",
    "content_digest",
    "gdp",
    "l1",
    "l2",
    "larger",
    "linf",
    "parse_release",
    "price",
    "pure_dp",
    "read_and_price",
    "teachers",
    "zcdp",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.release.builders": (
            "ReleaseDraft approx_dp between gdp l1 l2 linf pure_dp teachers zcdp"
        ),
        "modicum.release.model": "Mechanism Release content_digest",
        "modicum.release.parser": "parse_release",
        "modicum.release.parts": "EVERYTHING Part Span",
        "modicum.release.population": "Partition Population",
        "modicum.release.price": "price",
        "modicum.release.priced_release": "PricedMechanism PricedRelease",
        "modicum.release.price_cache": "Description read_and_price",
        "modicum.release.units": "Relation Unit larger",
        "modicum.release.vocabulary": "Label Vocabulary",
    },
)

"""From a marked tree to a release: every key known, every word in the vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.kind import NUMBERS_MAX
from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, fail, items, line, release_id, text
from modicum.release.header import Header
from modicum.release.mechanism_parser import (
    CONTRIBUTIONS_MAX,
    parse_labels,
    parse_mechanism,
    read_attributes,
    read_sampling,
)
from modicum.release.model import Mechanism, Release
from modicum.release.part_parser import read_part
from modicum.release.parts import EVERYTHING
from modicum.release.vocabulary import (
    CHOICE,
    CHOICE_CLAIM,
    CHOICE_METHODS,
    METADATA,
    PAST_METADATA,
    QUERY,
    UTILITY,
    Vocabulary,
)

__all__ = [
    "CONTRIBUTIONS_MAX",
    "MECHANISMS_MAX",
    "Header",
    "parse_heading",
    "parse_release",
    "read_attributes",
    "read_date",
]

#: More mechanisms in one release are refused.
MECHANISMS_MAX = 1000
#: Maximum number of mechanisms with noise given by eps and delta: each takes a tenth of
#: a second to compute.
CALIBRATED_MAX = 100
#: Maximum number of mechanisms with a selection: each takes up to half a second.
SELECTED_MAX = 20
#: Maximum number of different mechanisms on samples: each takes up to half a second.
SAMPLED_MAX = 50


def parse_release(node: Node, vocabulary: Vocabulary) -> Release:
    """Return the release of a marked tree.

    Raises:
        InputError: With every mistake found, each with its position.
    """
    found = Problems()
    fields = Fields(node, "the release")
    heading = parse_heading(fields, vocabulary, found)
    mechanisms: list[Mechanism] = []
    with found.guard():
        described = items(fields.take("mechanisms"), "`mechanisms`")
        if not 1 <= len(described) <= MECHANISMS_MAX:
            raise fail(
                Code.OUT_OF_RANGE,
                f"a release has 1 to {MECHANISMS_MAX} mechanisms, not {len(described)}",
                node,
            )
        _refuse_slow(described, vocabulary)
        for number, item in enumerate(described, 1):
            with found.guard():
                mechanisms.append(
                    parse_mechanism(item, number, heading.inherited, vocabulary)
                )
        _refuse_duplicates(mechanisms, described, found)
        _refuse_many_samples(mechanisms, node)
    with found.guard():
        fields.finish()
    found.raise_any()
    return Release(
        heading.id, heading.labels, heading.metadata, tuple(mechanisms), node.mark
    )


def _refuse_slow(described: Sequence[Node], vocabulary: Vocabulary) -> None:
    """Refuse more mechanisms than can be priced in a few seconds."""
    calibrated: list[Node] = []
    selected: list[Node] = []
    coefficients = 0
    for one in described:
        keys = {k.text: v for k, v in one.entries} if isinstance(one, Entries) else {}
        own = keys.keys() - vocabulary.labels.keys()
        word = keys.get("mechanism")
        kind = RELEASE_KINDS.get(word.text) if isinstance(word, Scalar) else None
        if "eps" in own and kind and kind.target:
            calibrated.append(one)
        if "selection" in own:
            selected.append(one)
        listed = keys.get("coefficients")
        coefficients += len(listed.items) if isinstance(listed, Items) else 0
    for slow, most, given, remedy in (
        (
            calibrated,
            CALIBRATED_MAX,
            "are given by `eps`",
            "give the others by `sigma`",
        ),
        (selected, SELECTED_MAX, "have a `selection`", "describe several releases"),
    ):
        if len(slow) > most:
            raise fail(
                Code.TOO_LARGE,
                f"more than {most} mechanisms {given}",
                slow[most],
                help=remedy,
            )
    if coefficients > NUMBERS_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"the mechanisms have more than {NUMBERS_MAX} `coefficients`",
            described[0],
            help="describe several releases",
        )


def _refuse_many_samples(mechanisms: Sequence[Mechanism], node: Node) -> None:
    """Refuse more samples than are priced in half a minute; equal ones are one."""
    priced = {
        (
            one.kind,
            frozenset(one.parameters.items()),
            frozenset(one.sensitivity.items()),
            one.sampling.rate,
        )
        for one in mechanisms
        if one.sampling is not None
    }
    if len(priced) > SAMPLED_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"more than {SAMPLED_MAX} different mechanisms run on samples",
            node,
            help="describe several releases",
        )


def may_be_slow(release: Mapping[str, object], mechanisms: Sequence[object]) -> bool:
    """Return whether plain data may exceed a limit that `parse_release` knows."""
    if len(mechanisms) <= min(SAMPLED_MAX, SELECTED_MAX, CALIBRATED_MAX):
        return False  # As almost all: quick.

    def count(key: str) -> int:
        return sum(isinstance(one, Mapping) and key in one for one in mechanisms)

    sampled = len(mechanisms) if "sampling" in release else count("sampling")
    return (
        sampled > SAMPLED_MAX
        or count("selection") > SELECTED_MAX
        or count("eps") > CALIBRATED_MAX
    )


def parse_heading(fields: Fields, vocabulary: Vocabulary, found: Problems) -> Header:
    """Return the heading of a release.

    Args:
        fields: The keys of the release; all but `mechanisms` are consumed.
        vocabulary: The words it may use.
        found: Collects the mistakes; invalid parts are left out.
    """
    identifier = "?"
    with found.guard():
        identifier = release_id(fields.take("release"), "the release id")
    labels = parse_labels(fields, vocabulary, found)
    metadata: dict[str, str] = {}
    open_keys = [key for key in METADATA if key not in vocabulary.labels]
    for key in (*open_keys, *PAST_METADATA):
        value = fields.take_optional(key)
        if value is not None:
            with found.guard():
                reader = read_date if key == "released_on" else line
                metadata[key] = reader(value, f"`{key}`")
    if QUERY not in vocabulary.labels:
        query = fields.take_optional(QUERY)
        if query is not None:
            with found.guard():
                metadata[QUERY] = _read_digest(query)
    if CHOICE not in vocabulary.labels:
        choice = fields.take_optional(CHOICE)
        if choice is not None:
            with found.guard():
                metadata[CHOICE] = _read_choice(choice)
    if UTILITY not in vocabulary.labels:
        utility = fields.take_optional(UTILITY)
        if utility is not None:
            from modicum.release.utility import read_utility

            with found.guard():
                read_utility(utility)  # It is looked at, and not kept.
    part = read_part(fields, EVERYTHING, vocabulary, found)
    sampling = read_sampling(fields, None, vocabulary, found)
    return Header(identifier, labels, metadata, part, sampling)


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_METHOD = re.compile(r"[a-z][a-z0-9-]{0,60}", re.ASCII)
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)


def _read_digest(node: Node) -> str:
    """Return which query a release is."""
    value = text(node, "`query`")
    if not _DIGEST.fullmatch(value):
        raise fail(
            Code.OUT_OF_RANGE,
            "`query` of a release must be the digest of a query, sha256: and 64 digits",
            node,
            help="`modicum query compile` writes it; leave it out of other releases",
        )
    return value


def _read_choice(node: Node) -> str:
    """Return how the epsilon of a release was chosen."""
    value = text(node, f"`{CHOICE}`")
    claim, by, method = value.partition(" by ")
    if not by or not _METHOD.fullmatch(method):
        raise fail(
            Code.OUT_OF_RANGE,
            f"`{CHOICE}` must be a claim and a method, such as `dp by"
            " data-independent`",
            node,
            help="`modicum risk choose` writes it; leave it out if no rows were used",
        )
    if claim != CHOICE_CLAIM or method not in CHOICE_METHODS:
        raise fail(
            Code.NO_CLAIM,
            f"the epsilon was chosen by `{method}`, with the claim `{claim}`: no"
            " bound on its loss is known",
            node,
            notes=(
                "the epsilon, or its absence, reveals facts about rows; charging"
                " more does not help",
            ),
            help="choose it with `data-independent` or `private-selection`",
        )
    return value


def read_date(node: Node, what: str) -> str:
    """Return a date such as ``2026-03-01``.

    Raises:
        InputError: If it is no date.
    """
    value = text(node, what)
    if not _DATE.fullmatch(value):
        raise fail(Code.OUT_OF_RANGE, f"{what} must be a date such as 2026-03-01", node)
    return value


def _refuse_duplicates(
    mechanisms: list[Mechanism], described: tuple[Node, ...], found: Problems
) -> None:
    if len(mechanisms) != len(described):
        return  # Some did not parse; that is reported already.
    seen: set[str] = set()
    for mechanism, node in zip(mechanisms, described, strict=True):
        with found.guard():
            if mechanism.name in seen:
                raise fail(
                    Code.DUPLICATE_NAME,
                    f"two mechanisms are named `{mechanism.name}`",
                    node,
                    help="give each a different name",
                )
        seen.add(mechanism.name)

"""Reading and pricing at once, with a cache of earlier prices.

Most releases repeat a mechanism under a new id, or on another part of the data. A
mechanism given as plain Python data is cached by the bytes of its description: what was
valid once, under one vocabulary, is valid again. Mistakes are never cached, so that
each is found and placed anew; nor is anything from a file, whose messages contain
positions.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Mapping
from typing import TypeAlias, cast

from msgspec.structs import replace

from modicum.core.document import Entries, Items, Node, Scalar, from_python
from modicum.core.errors import InputError
from modicum.core.reader import Fields, Problems, release_id
from modicum.release.builders import ReleaseDraft
from modicum.release.header import Header
from modicum.release.mechanism_parser import parse_mechanism, refuse_hidden
from modicum.release.model import Release
from modicum.release.parser import (
    MECHANISMS_MAX,
    may_be_slow,
    parse_heading,
    parse_release,
)
from modicum.release.parts import Part
from modicum.release.price import price, price_mechanism, steps_of, with_defaults
from modicum.release.priced_release import PricedMechanism, PricedRelease
from modicum.release.vocabulary import Vocabulary

#: A release in any form: a draft, plain data as in a file, or a tree with places.
Description: TypeAlias = "ReleaseDraft | Mapping[str, object] | Node"

# Created once: building a union of types is slower than checking for one.
_TREES = (Scalar, Items, Entries)
_LISTS = (list, tuple)
#: Longer descriptions of one mechanism are not remembered.
_BYTES_MAX = 10_000
# The last format that writes equal values alike, independent of shared references.
_FORMAT = 2
#: An id of plain letters: `release_id` would take it as it is.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]{0,199}")
#: Keys that a mechanism may set itself, or the release as defaults.
_PART = frozenset({"where", "periods", "groups"})
#: Keys outside of the heading that others may share.
_OWN = frozenset({"release", "mechanisms"})


def read_and_price(release: Description, vocabulary: Vocabulary) -> PricedRelease:
    """Return a release, read and priced: `price` of `parse_release`.

    Raises:
        InputError: With every mistake found.
    """
    if isinstance(release, _TREES):
        return price(parse_release(release, vocabulary), vocabulary)
    if isinstance(release, ReleaseDraft):
        release = release.to_dict()
    found = _by_mechanism(release, vocabulary)
    if found is None:
        found = price(parse_release(from_python(release), vocabulary), vocabulary)
    return found


def _by_mechanism(
    release: Mapping[str, object], vocabulary: Vocabulary
) -> PricedRelease | None:
    """Return a release whose heading and mechanisms were looked up, one by one."""
    mechanisms = release.get("mechanisms") if type(release) is dict else None
    if not isinstance(mechanisms, _LISTS) or not 1 <= len(mechanisms) <= MECHANISMS_MAX:
        return None
    if may_be_slow(release, mechanisms):
        return None
    try:
        written = [marshal.dumps(one, _FORMAT) for one in mechanisms]
        if sum(map(len, written)) > _BYTES_MAX:
            return None
        heading = _heading(release, vocabulary)
        labels = tuple(heading.labels.items())
        priced: list[PricedMechanism] = []
        for number, (one, text) in enumerate(zip(mechanisms, written, strict=True), 1):
            # A mechanism with its own part inherits the rest: both affect the price.
            part = heading.part if _names_a_part(one) else None
            known = vocabulary.priced.get(
                (number, labels, part, heading.sampling, text)
            )
            if known is not None and part is None:
                known = _over(heading.part, known, vocabulary)
            priced.append(known or _anew(text, number, heading, vocabulary))
    except (ValueError, InputError):
        return None
    described = tuple([one.mechanism for one in priced])
    if len({one.name for one in described}) < len(described):
        return None
    whole = Release(heading.id, heading.labels, heading.metadata, described)
    labeled = with_defaults(heading.labels, vocabulary)
    return PricedRelease(whole, labeled, tuple(priced))


def _anew(
    written: bytes, number: int, heading: Header, vocabulary: Vocabulary
) -> PricedMechanism:
    """Return a mechanism that was read and priced just now; it is remembered."""
    entry = _read(written)
    node = from_python(entry)
    described = parse_mechanism(node, number, heading.inherited, vocabulary)
    # By what was read: the caller may have changed it since it was written.
    part = heading.part if _names_a_part(entry) else None
    labels = tuple(heading.labels.items())
    key = number, labels, part, heading.sampling, written
    return vocabulary.priced.keep(key, price_mechanism(described, vocabulary))


def _read(written: bytes) -> object:
    """Return the value of our own bytes; their source may have changed since.

    An object with a buffer, such as a number of NumPy, has the bytes of its buffer: so
    may another one with a different meaning. It is decoded as bytes, which are invalid.
    """
    found: object = marshal.loads(written)  # noqa: S302 - nobody else wrote them
    return found


def _names_a_part(mechanism: object) -> bool:
    """Return whether a mechanism names some of the part of the data that it reads."""
    return isinstance(mechanism, dict) and not mechanism.keys().isdisjoint(_PART)


def _heading(release: Mapping[str, object], vocabulary: Vocabulary) -> Header:
    """Return the heading of a release.

    The bytes distinguish a number from a text, a list from a tuple, and 1 from 1.0 and
    from true. Values of any type other than those of JSON have none, or no price.
    """
    rest = {key: value for key, value in release.items() if key not in _OWN}
    own = _release_id(release.get("release"))
    written = marshal.dumps(rest, _FORMAT)
    known = vocabulary.headings.get(written)
    if known is not None:
        return replace(known, id=own)
    found = Problems()
    whole: dict[str, object] = {"release": own}
    whole |= cast("dict[str, object]", _read(written))
    fields = Fields(from_python(whole), "the release")
    heading = parse_heading(fields, vocabulary, found)
    with found.guard():
        fields.finish()
    found.raise_any()
    if len(written) <= _BYTES_MAX:
        vocabulary.headings.keep(written, heading)
    return heading


def _release_id(given: object) -> str:
    """Return the id in a release."""
    if type(given) is str and _PLAIN_ID.fullmatch(given):
        return given
    return release_id(from_python(given), "the release id")


def _over(
    part: Part, known: PricedMechanism, vocabulary: Vocabulary
) -> PricedMechanism | None:
    """Return a mechanism as it is over another part; None if that is another price."""
    before = known.mechanism.part
    if part == before:
        return known
    try:
        refuse_hidden(part, known.mechanism.attributes, None, vocabulary)
    except InputError:
        return None
    moved = known.over(part)
    if part.periods != before.periods and (
        steps_of(moved.mechanism, vocabulary) != steps_of(known.mechanism, vocabulary)
    ):
        return None
    return moved

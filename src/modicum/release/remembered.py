"""Reading and pricing at once, and remembering what was priced before.

Most releases repeat a mechanism under a new id, or over another part of the data. A
mechanism that is given as plain Python data is known by the bytes of its description:
what was right once, under one vocabulary, is right again. Mistakes are never
remembered, so that each is found and placed anew; nor is what stands in a file, whose
messages show places in it.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from modicum.core.document import Entries, Items, Node, Scalar, from_python
from modicum.core.errors import InputError
from modicum.core.reading import Fields, Problems, release_id
from modicum.release.describe import ReleaseDraft
from modicum.release.heading import Heading
from modicum.release.model import Release
from modicum.release.parse import parse_heading, parse_release
from modicum.release.parse_mechanism import refuse_hidden
from modicum.release.parts import Part
from modicum.release.price import price, steps_of, with_defaults
from modicum.release.priced import PricedMechanism, PricedRelease
from modicum.release.vocabulary import Described, Vocabulary

#: A release in any form: a draft, plain data as in a file, or a tree with places.
Description: TypeAlias = "ReleaseDraft | Mapping[str, object] | Node"

# Made once: making a union of types takes longer than asking for one.
_TREES = (Scalar, Items, Entries)
_LISTS = (list, tuple)
#: Longer descriptions of one mechanism are not remembered.
_BYTES_MAX = 10_000
# The last format that writes equal values alike, whatever else refers to them.
_FORMAT = 2
#: An id of plain letters: `release_id` would take it as it is.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]{0,199}")
#: Types whose values are no more than they look like.
_USUAL = frozenset({str, int, float, bool, type(None)})
#: What a mechanism may say itself, or the release for all that do not.
_PART = frozenset({"where", "periods", "groups"})
#: What is not part of a heading that others may share.
_OWN = frozenset({"release", "mechanisms"})


def read_and_price(release: Description, vocabulary: Vocabulary) -> PricedRelease:
    """Return a release, read and priced: `price` of `parse_release`.

    Args:
        release: The release.
        vocabulary: The words it may use.

    Raises:
        InputError: With every mistake found.
    """
    if isinstance(release, _TREES):
        return price(parse_release(release, vocabulary), vocabulary)
    if isinstance(release, ReleaseDraft):
        release = release.to_dict()
    plain = _Plain.of(release, vocabulary)
    if plain is None:
        return price(parse_release(from_python(release), vocabulary), vocabulary)
    found = plain.remembered()
    if found is None:
        found = price(parse_release(from_python(release), vocabulary), vocabulary)
        if _is_usual(release["mechanisms"]):
            for key, one in zip(plain.keys, found.mechanisms, strict=True):
                vocabulary.priced.keep(key, one)
    return found


@dataclass(frozen=True, slots=True)
class _Plain:
    """A release of plain data whose heading has no mistakes.

    Attributes:
        heading: Its heading.
        keys: What its mechanisms are known by.
        vocabulary: The words it may use.
    """

    heading: Heading
    keys: list[Described]
    vocabulary: Vocabulary

    @classmethod
    def of(cls, release: Mapping[str, object], vocabulary: Vocabulary) -> _Plain | None:
        """Return a release as it is known; None if it is not."""
        mechanisms = release.get("mechanisms") if type(release) is dict else None
        if not isinstance(mechanisms, _LISTS):
            return None
        try:
            written = [marshal.dumps(one, _FORMAT) for one in mechanisms]
            heading = _heading(release, vocabulary)
        except (ValueError, InputError):
            return None
        if sum(map(len, written)) > _BYTES_MAX:
            return None
        labels = tuple(heading.labels.items())
        keys = [
            (number, labels, _inherited(one, heading.part), text)
            for number, (one, text) in enumerate(
                zip(mechanisms, written, strict=True), 1
            )
        ]
        return cls(heading, keys, vocabulary)

    def remembered(self) -> PricedRelease | None:
        """Return the priced release, if each of its mechanisms is known."""
        priced: list[PricedMechanism] = []
        for key in self.keys:
            known = self.vocabulary.priced.get(key)
            if known is not None and key[2] is None:
                known = _over(self.heading.part, known, self.vocabulary)
            if known is None:
                return None
            priced.append(known)
        if not priced or len({one.mechanism.name for one in priced}) < len(priced):
            return None
        heading = self.heading
        described = tuple(one.mechanism for one in priced)
        whole = Release(heading.id, heading.labels, heading.metadata, described)
        labels = with_defaults(whole.labels, self.vocabulary)
        return PricedRelease(whole, labels, tuple(priced))


def _is_usual(value: object) -> bool:
    """Return whether a value is made of the very types that have bytes of their own.

    Anything with a buffer, such as a number of NumPy, has the bytes of its buffer: so
    may another one that means something else.
    """
    kind = type(value)
    if kind is dict:
        return all(map(_is_usual, value)) and all(map(_is_usual, value.values()))  # type: ignore[attr-defined, call-overload]
    if kind is list or kind is tuple:
        return all(map(_is_usual, value))  # type: ignore[call-overload]
    return kind in _USUAL


def _inherited(mechanism: object, part: Part) -> Part | None:
    """Return what a mechanism inherits, if it names some of its part itself."""
    names = isinstance(mechanism, dict) and not mechanism.keys().isdisjoint(_PART)
    return part if names else None


def _heading(release: Mapping[str, object], vocabulary: Vocabulary) -> Heading:
    """Return the heading of a release.

    The bytes tell a number from a text, a list from a tuple, and 1 from 1.0 and from
    true. Values of any other type than those of JSON have none, or no price.

    Raises:
        InputError: If it has a mistake.
        ValueError: If it holds a value that has no bytes.
    """
    rest = {key: value for key, value in release.items() if key not in _OWN}
    written = marshal.dumps(rest, _FORMAT)
    known = vocabulary.headings.get(written)
    if known is not None:
        own = _release_id(release.get("release"))
        return Heading(own, known.labels, known.metadata, known.part)
    found = Problems()
    whole = {**rest, "release": release.get("release")}
    fields = Fields(from_python(whole), "the release")
    heading = parse_heading(fields, vocabulary, found)
    with found.guard():
        fields.finish()
    found.raise_any()
    if len(written) <= _BYTES_MAX and _is_usual(rest):
        vocabulary.headings.keep(written, heading)
    return heading


def _release_id(given: object) -> str:
    """Return the id that a release is given.

    Raises:
        InputError: If it is none.
    """
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

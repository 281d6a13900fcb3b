"""Remarks in the log, and disclosures outside differential privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from modicum.api.local.balances import Entry
from modicum.api.local.governance.approval_cases import active_policy
from modicum.core.document import Entries, Items, Node, Scalar, from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    line,
    release_id,
    text,
)
from modicum.ledger.log.events import Annotated, DisclosureRecorded
from modicum.ledger.state.flow import DISCLOSURES
from modicum.release import EVERYTHING, Vocabulary
from modicum.release.part_parser import read_part

#: A disclosure, plain as in a file or a tree with places.
Disclosure: TypeAlias = "Mapping[str, object] | Node"

#: Open text that a disclosure may carry.
METADATA = ("released_on", "audience", "requester", "evidence")
#: The placeholder for every attribute of the data.
ALL = "all"


def annotate(entry: Entry, remark: str, *, about: str = "") -> int:
    """Add a remark to the log; it changes nothing."""
    content = text(from_python(remark), "the remark").strip()
    if not content:
        raise InputError(Problem(Code.MISSING_KEY, "the remark is empty"))
    state = entry.book.state
    if about and about not in state.releases and about not in state.disclosures:
        raise _unknown(about)
    entry.add(Annotated(about, content))
    return state.seq


def _unknown(about: str) -> InputError:
    return InputError(
        Problem(
            Code.RELEASE_UNKNOWN,
            f"no release and no disclosure is named `{about[:200]}`",
            help="list them with  modicum ledger list",
        )
    )


def disclose(entry: Entry, disclosure: Disclosure) -> tuple[DisclosureRecorded, int]:
    """Record that something was disclosed outside differential privacy.

    No rule can count it: from here on it qualifies every claim about the ledger.
    """
    vocabulary = active_policy(entry.book).policy.vocabulary
    body = read_disclosure(disclosure, vocabulary)
    entry.add(body)
    return body, entry.book.state.seq


def read_disclosure(
    disclosure: Disclosure, vocabulary: Vocabulary
) -> DisclosureRecorded:
    """Return a disclosure that was described."""
    node = (
        disclosure
        if isinstance(disclosure, Scalar | Items | Entries)
        else from_python(disclosure)
    )
    fields = Fields(node, "the disclosure")
    found = Problems()
    identifier = what = reason = "?"
    attributes: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    with found.guard():
        identifier = _identifier(fields.take("disclosure"))
    with found.guard():
        what = _text(fields.take("what"), "`what`")
    with found.guard():
        attributes = _attributes(fields.take("attributes"), vocabulary)
    with found.guard():
        reason = _text(fields.take("reason"), "`reason`")
    for key in METADATA:
        value = fields.take_optional(key)
        if value is not None:
            with found.guard():
                metadata[key] = line(value, f"`{key}`")
    part = read_part(fields, EVERYTHING, vocabulary, found)
    with found.guard():
        fields.finish()
    found.raise_any()
    return DisclosureRecorded(identifier, what, attributes, part, reason, metadata)


def _identifier(node: Node) -> str:
    found = release_id(node, "the id of the disclosure")
    if found.startswith(DISCLOSURES):
        raise fail(
            Code.BAD_NAME,
            f"ids that start with `{DISCLOSURES}` are reserved for the escrow",
            node,
            notes=("disclosures of contracts are recorded automatically",),
            help="choose another id",
        )
    return found


def _text(node: Node, what: str) -> str:
    content = line(node, what).strip()
    if not content:
        raise fail(Code.MISSING_KEY, f"{what} is empty", node)
    return content


def _attributes(node: Node, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the attributes of a list, or all of them."""
    known = sorted(vocabulary.attributes)
    if isinstance(node, Scalar) and node.text == ALL:
        return tuple(known)
    found = Problems()
    read: set[str] = set()
    for item in items(node, "`attributes`"):
        with found.guard():
            read.add(choice(item, "attribute", known, Code.UNKNOWN_ATTRIBUTE))
    found.raise_any()
    return tuple(sorted(read))

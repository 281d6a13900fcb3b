"""The structure of a policy, as far as its layout depends on it.

A mapping either has fixed keys, which have one order, or its keys are names that the
author gave, which stay in the author's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, field

from modicum.core.document import Entries, Node, Scalar


class Shape(Struct, frozen=True):
    """The contents of a place in a policy.

    Attributes:
        keys: The fixed keys in canonical order, each with its contents.
        each: The contents of every item of a list, or of every value under a given
            name.
        open: Whether it has a line for each part even where one line would suffice.
        predicate: Whether it is a text that is always quoted.
        with_for_each: Its contents instead when it has the key ``for_each``.
    """

    keys: Mapping[str, Shape] = field(default_factory=dict)
    each: Shape | None = None
    open: bool = False
    predicate: bool = False
    with_for_each: Shape | None = None

    def at(self, node: Node) -> Shape:
        """Return the shape of a node at this place."""
        if self.with_for_each is None or not isinstance(node, Entries):
            return self
        expands = any(key.text == "for_each" for key, _ in node.entries)
        return self.with_for_each if expands else self

    def below(self, key: str) -> Shape:
        """Return the contents of a key's value."""
        return self.keys.get(key) or self.each or VALUE

    def ordered(self, node: Entries) -> list[tuple[Scalar, Node]]:
        """Return the entries in canonical order: known keys first, in theirs."""
        order = {key: place for place, key in enumerate(self.keys)}
        # Sorting is stable: names that the author gave stay as they are.
        return sorted(
            node.entries, key=lambda entry: order.get(entry[0].text, len(order))
        )


def _fixed(**keys: Shape) -> Shape:
    return Shape(MappingProxyType(keys))


def _named(each: Shape, *, opened: bool = False) -> Shape:
    return Shape(each=each, open=opened)


VALUE = Shape()
_PREDICATE = Shape(predicate=True)
_BUDGET = _fixed(eps=VALUE, delta=VALUE, rho=VALUE, mu=VALUE, rdp=VALUE)
_MAP = _fixed(
    scale=VALUE,
    add=_BUDGET,
    to=_BUDGET,
    map=VALUE,
    between=VALUE,
    below=VALUE,
    above=VALUE,
)


def _base_policy(budget: Shape, with_for_each: Shape | None = None) -> Shape:
    keys = {
        "name": VALUE,
        "for_each": VALUE,
        "when": _PREDICATE,
        "unit": VALUE,
        "budget": budget,
        "override": _named(_BUDGET),
        "levels": _named(_MAP),
        "requester_days": VALUE,
    }
    return Shape(MappingProxyType(keys), with_for_each=with_for_each)


_BASE_POLICIES = Shape(
    each=_base_policy(_BUDGET, with_for_each=_base_policy(_named(_BUDGET))), open=True
)
_UNIT = _fixed(
    id=VALUE,
    time=_fixed(column=VALUE, period=VALUE),
    within=VALUE,
    groups=VALUE,
    neighbors=VALUE,
)
_SETTING = _fixed(when=_PREDICATE, budget=_MAP, within=VALUE)
_ENDS = MappingProxyType({"from": VALUE, "to": VALUE})
_SPANS = Shape(_ENDS, each=Shape(_ENDS))
_PARTITION = _fixed(
    values=VALUE,
    range=VALUE,
    immutable=VALUE,
    was=Shape(each=_fixed(old=_SPANS, now=_SPANS)),
)
_PEOPLE = {"need": VALUE, "from": VALUE, "requester_may_approve": VALUE}
_APPROVAL = Shape(
    MappingProxyType(
        {
            "name": VALUE,
            "when": _PREDICATE,
            **_PEOPLE,
        }
    )
)

#: A whole policy. The order of its keys is the order of the canonical text.
POLICY = Shape(
    MappingProxyType(
        {
            "modicum": VALUE,
            "include": VALUE,
            "name": VALUE,
            "dp": _fixed(
                neighbors=VALUE,
                filter=VALUE,
                accountant=VALUE,
                bare_budget=_fixed(type=VALUE, delta=VALUE),
            ),
            "units": _named(_UNIT, opened=True),
            "labels": _named(
                _fixed(
                    values=VALUE, default=VALUE, was=_named(VALUE), former_name=VALUE
                ),
                opened=True,
            ),
            "schema": Shape(
                MappingProxyType(
                    {
                        "categories": VALUE,
                        "attributes": _named(VALUE, opened=True),
                        "was": _named(VALUE),
                    }
                ),
                open=True,
            ),
            "population": _fixed(
                partition_by=_named(_PARTITION),
                groups=_fixed(immutable=VALUE),
                time_detail=VALUE,
            ),
            "rotation": _fixed(
                active=VALUE, slack=VALUE, retired=VALUE, opened_by=VALUE
            ),
            "reservations": _fixed(
                share=VALUE, days=VALUE, data_sets=_named(_fixed(share=VALUE))
            ),
            "unmatched": VALUE,
            "policies": _BASE_POLICIES,
            "extensions": Shape(
                each=_fixed(name=VALUE, settings=_named(_SETTING, opened=True)),
                open=True,
            ),
            "per_release": _BASE_POLICIES,
            "guards": Shape(
                each=_fixed(name=VALUE, unless=_PREDICATE, message=VALUE), open=True
            ),
            "roles": _named(VALUE, opened=True),
            "keys": _named(VALUE, opened=True),
            "owners": _named(VALUE, opened=True),
            "approvals": Shape(each=_APPROVAL, open=True),
            "activation": Shape(MappingProxyType(_PEOPLE)),
            "disclosed_invariants": VALUE,
        }
    ),
    open=True,
)

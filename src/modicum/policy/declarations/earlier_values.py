"""Reading `was`: what the values of a partitioning attribute were before."""

from __future__ import annotations

from modicum.core.document import Items, Node
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, choice, fail, items, name
from modicum.release.population import Was

#: A larger number in the domain of a partitioning attribute is refused.
DOMAIN_MAX = 10**9

_EVERY = (-DOMAIN_MAX, DOMAIN_MAX)


def read_was_of_values(
    node: Node | None, values: tuple[str, ...], what: str
) -> tuple[Was, ...]:
    """Return what listed values were before.

    Args:
        node: The mapping `was`: by old value, one or several of the present ones;
            None if there is none.
        values: The present values.
        what: The attribute, for messages.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return ()
    found = Problems()
    read: list[Was] = []
    for key, now in Fields(node, f"`was` of {what}").rest():
        with found.guard():
            old = name(key, f"an old value of {what}")
            present = {
                choice(item, f"value of {what}", values, Code.UNKNOWN_CHOICE)
                for item in _one_or_more(now, what)
            }
            read.append(Was((old,), tuple(sorted(present))))
    found.raise_any()
    return tuple(read)


def read_was_of_range(
    node: Node | None, low: int, high: int, what: str
) -> tuple[Was, ...]:
    """Return what the whole numbers of a range were before.

    Args:
        node: The list `was`, of entries `{old: …, now: …}`; None if there is none.
        low: The least number of the present range.
        high: The greatest.
        what: The attribute, for messages.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return ()
    found = Problems()
    read: list[Was] = []
    for item in items(node, f"`was` of {what}"):
        with found.guard():
            fields = Fields(item, f"an entry of `was` of {what}")
            from modicum.release.part_parser import read_numbers

            old = read_numbers(fields.take("old"), f"`old` of {what}", _EVERY)
            now = read_numbers(fields.take("now"), f"`now` of {what}", (low, high))
            fields.finish()
            read.append(Was(old, now))
    found.raise_any()
    return tuple(read)


def _one_or_more(node: Node, what: str) -> tuple[Node, ...]:
    several = node.items if isinstance(node, Items) else (node,)
    if not several:
        raise fail(
            Code.MISSING_KEY,
            f"an old value of {what} stands for no value now",
            node,
            help="name the values that it may stand for, or leave it out: then it"
            " stands for all of them",
        )
    return several

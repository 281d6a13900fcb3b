"""Joining the sections of several files: names join, lists follow one another."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, fail, items, place
from modicum.policy.document.layout import POLICY

#: What the parts of a section are joined by: names, lists, or sections of names.
_NAMES = ("units", "labels", "roles", "keys")
_GROUPS = {
    "schema": ("categories", "attributes"),
    "population": ("partition_by", "groups", "time_detail"),
}
_LISTS = (
    "policies",
    "extensions",
    "per_release",
    "guards",
    "approvals",
    "disclosed_invariants",
)


def joined(root: Node, files: Sequence[Node]) -> Node:
    """Return one tree of the sections of several files.

    Args:
        root: The file whose version and name they take.
        files: All of them, that one too, in the order in which they follow.

    Raises:
        InputError: If two files say the same thing; with every mistake found.
    """
    found = Problems()
    sections: dict[str, list[tuple[Scalar, Node]]] = {}
    own = {"modicum", "name"}  # Of the policy itself; a part's are its own.
    for file in files:
        assert isinstance(file, Entries)
        for key, value in file.entries:
            if key.text != "include" and (key.text not in own or file is root):
                sections.setdefault(key.text, []).append((key, value))
    entries: list[tuple[Scalar, Node]] = []
    for section in POLICY.keys:
        if section in sections:
            with found.guard():
                entries.append(_section(section, sections[section]))
    found.raise_any()
    return Entries(tuple(entries), root.mark)


def _section(section: str, given: list[tuple[Scalar, Node]]) -> tuple[Scalar, Node]:
    key = given[0][0]
    values = [value for _, value in given]
    if section in _LISTS:
        together = [item for value in values for item in items(value, f"`{section}`")]
        return key, Items(tuple(together), values[0].mark)
    if section in _NAMES:
        return key, _names(section, values)
    if section in _GROUPS:
        return key, _groups(section, values)
    if len(given) > 1:
        again = given[1][0]
        raise fail(
            Code.DUPLICATE_KEY,
            f"`{section}` stands in two files",
            again,
            notes=(f"first at {place(key.mark)}",),
            help="state it once, for the whole policy",
        )
    return key, values[0]


def _groups(section: str, values: list[Node]) -> Entries:
    """Return a section of sections, such as `schema`."""
    found = Problems()
    inner: dict[str, list[Node]] = {group: [] for group in _GROUPS[section]}
    keys: dict[str, Scalar] = {}
    for value in values:
        fields = Fields(value, f"`{section}`")
        for group, those in inner.items():
            if group in fields:
                keys.setdefault(group, fields.key_node(group))
                those.append(fields.take(group))
        with found.guard():
            fields.finish()
    entries: list[tuple[Scalar, Node]] = []
    for group, key in keys.items():
        with found.guard():
            entries.append((key, _names(group, inner[group])))
    found.raise_any()
    return Entries(tuple(entries), values[0].mark)


def _names(section: str, values: list[Node]) -> Entries:
    """Return the names of several mappings; each may stand in one only."""
    found = Problems()
    entries: dict[str, tuple[Scalar, Node]] = {}
    for value in values:
        with found.guard():
            for key, below in Fields(value, f"`{section}`").rest():
                if key.text in entries:
                    first = entries[key.text][0]
                    problem = fail(
                        Code.DUPLICATE_NAME,
                        f"`{key.text[:60]}` of `{section}` stands in two files",
                        key,
                        notes=(f"first at {place(first.mark)}",),
                        help="keep one, or rename one",
                    )
                    found.add(problem.problems[0])
                else:
                    entries[key.text] = (key, below)
    found.raise_any()
    return Entries(tuple(entries.values()), values[0].mark)

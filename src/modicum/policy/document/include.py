"""A policy in several files: all included parts become one tree.

Every name and rule keeps its position, so that mistakes are shown there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.reader import (
    Fields,
    Problems,
    fail,
    items,
    line,
    name,
    nearest,
    place,
    placed,
    text,
)
from modicum.policy.document.layout import POLICY

#: A policy of more files is refused.
FILES_MAX = 100
#: Files that include files that include files … no deeper than this.
DEPTH_MAX = 8


def has_include(node: Node) -> bool:
    """Return whether a policy names other files that belong to it."""
    return isinstance(node, Entries) and any(
        key.text == "include" for key, _ in node.entries
    )


def refuse_include(node: Node) -> None:
    """Refuse a policy with includes, where only one text was given.

    Raises:
        InputError: If it names any.
    """
    if isinstance(node, Entries):
        for key, _ in node.entries:
            if key.text == "include":
                raise fail(
                    Code.INCLUDE,
                    "a policy that includes files must be loaded as a file",
                    key,
                    notes=("a text has no folder to search",),
                    help="give its path, or the text printed by `policy fmt`",
                )


def merged(root: Node, file: str, read: Callable[[str], Node]) -> Node:
    """Return the single tree of a policy and all that it includes.

    Included content precedes that of the file itself, in the order of the list. The
    result has no key `include`.

    Args:
        root: The tree of the policy's own file.
        file: Its name within its folder.
        read: Returns the tree of a file, by its path from that folder.

    Raises:
        InputError: If a file cannot be read or included, or two files define the same
            thing; with every mistake found.
    """
    if not has_include(root):
        return root
    search = _Search(read)
    search.take(root, file, (file,))
    search.found.raise_any()
    return joined(root, search.files)


def check_part(node: Node) -> None:
    """Check a part as far as possible by itself: its sections.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    with found.guard():
        _refuse_unknown_keys(node)
        joined(node, [node])
    found.raise_any()


@dataclass
class _Search:
    """Follows includes, depth first, and collects the files."""

    read: Callable[[str], Node]
    files: list[Entries] = field(default_factory=list)
    seen: dict[str, Scalar | None] = field(default_factory=dict)
    found: Problems = field(default_factory=Problems)
    version: str | None = None

    def take(self, node: Node, path: str, chain: tuple[str, ...]) -> None:
        """Add a file, after all that it includes."""
        self.seen.setdefault(path, None)
        with self.found.guard():
            _refuse_unknown_keys(node)
            fields = Fields(node, "an included file")
            self._check_version(fields.take_optional("modicum"))
            own_name = fields.take_optional("name")
            if own_name is not None:
                name(own_name, "the policy's name")
            for inner in _included(fields.take_optional("include")):
                with self.found.guard():
                    self._follow(inner, path, chain)
            assert isinstance(node, Entries)
            self.files.append(node)

    def _follow(self, node: Scalar, path: str, chain: tuple[str, ...]) -> None:
        target = _resolved(node, path)
        if target in chain:
            circle = " -> ".join((*chain[chain.index(target) :], target))
            raise fail(
                Code.INCLUDE,
                f"`{target[:60]}` includes itself",
                node,
                notes=(circle,),
                help="include each file once, from one place",
            )
        if target in self.seen:
            first = self.seen[target]
            raise fail(
                Code.INCLUDE,
                f"`{target[:60]}` is included twice",
                node,
                notes=(f"first at {place(first.mark if first else None)}",),
                help="include each file once, from one place",
            )
        if len(chain) > DEPTH_MAX:
            raise fail(
                Code.INCLUDE, f"includes are nested deeper than {DEPTH_MAX}", node
            )
        if len(self.seen) >= FILES_MAX:
            raise fail(Code.INCLUDE, f"a policy of more than {FILES_MAX} files", node)
        self.seen[target] = node
        with placed(node), _where_it_is_looked_for():
            tree = self.read(target)
        self.take(tree, target, (*chain, target))

    def _check_version(self, node: Node | None) -> None:
        """Check that a file is written in the format of the first one."""
        if node is None:
            return
        version = text(node, "`modicum`")
        if self.version is None:
            self.version = version
        elif version != self.version:
            raise fail(
                Code.UNKNOWN_VERSION,
                f"`{version[:40]}` is another format than that of the including file",
                node,
                help=f"write  modicum: {self.version}  or leave it out",
            )


@contextmanager
def _where_it_is_looked_for() -> Iterator[None]:
    """Add to a missing file how its path is resolved."""
    try:
        yield
    except InputError as error:
        remedy = (
            "correct the path, relative to the folder of this file, or create the file"
        )
        raise InputError(
            *(
                replace(problem, help=remedy)
                if problem.code is Code.FILE_UNREADABLE and not problem.help
                else problem
                for problem in error.problems
            )
        ) from error


def _included(node: Node | None) -> list[Scalar]:
    """Return the paths of an `include`: one text, or a list of texts."""
    if node is None:
        return []
    listed = node.items if isinstance(node, Items) else (node,)
    paths: list[Scalar] = []
    for item in listed:
        line(item, "`include`")
        assert isinstance(item, Scalar)
        paths.append(item)
    return paths


def _resolved(node: Scalar, path: str) -> str:
    """Return a path relative to the policy's folder, given one of an including file."""
    parts = path.split("/")[:-1]
    if node.text.startswith("/") or "\\" in node.text or ":" in node.text:
        raise fail(
            Code.INCLUDE,
            f"`{node.text[:60]}` is not a path from the including file",
            node,
            help="write it relative to the folder of this file, such as"
            " parts/units.yaml",
        )
    for part in node.text.split("/"):
        if part == ".." and not parts:
            raise fail(
                Code.INCLUDE,
                f"`{node.text[:60]}` is outside the folder of the policy",
                node,
                notes=("a policy may not read files outside its folder",),
                help="move the file into the folder",
            )
        if part == "..":
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    if not parts or node.text.endswith("/"):
        raise fail(Code.INCLUDE, f"`{node.text[:60]}` is not a file", node)
    return "/".join(parts)


def _refuse_unknown_keys(node: Node) -> None:
    found = Problems()
    for key, _ in Fields(node, "an included file").rest():
        with found.guard():
            if key.text not in POLICY.keys:
                raise fail(
                    Code.UNKNOWN_KEY,
                    f"unknown key `{key.text[:60]}` in the policy",
                    key,
                    label=nearest(key.text, POLICY.keys),
                    help="known keys: " + ", ".join(POLICY.keys),
                )
    found.raise_any()


#: How the parts of a section are joined: names, lists, or sections of names.
_NAMES = ("units", "labels", "roles", "keys", "owners")
_GROUPS = {
    "schema": ("categories", "attributes", "was"),
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
        InputError: If two files define the same thing; with every mistake found.
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
            f"`{section}` is given in two files",
            again,
            notes=(f"first at {place(key.mark)}",),
            help="give it once, for the whole policy",
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
    """Return the names of several mappings; each may occur in one only."""
    found = Problems()
    entries: dict[str, tuple[Scalar, Node]] = {}
    for value in values:
        with found.guard():
            for key, below in Fields(value, f"`{section}`").rest():
                if key.text in entries:
                    first = entries[key.text][0]
                    problem = fail(
                        Code.DUPLICATE_NAME,
                        f"`{key.text[:60]}` of `{section}` is given in two files",
                        key,
                        notes=(f"first at {place(first.mark)}",),
                        help="keep one, or rename one",
                    )
                    found.add(problem.problems[0])
                else:
                    entries[key.text] = (key, below)
    found.raise_any()
    return Entries(tuple(entries.values()), values[0].mark)

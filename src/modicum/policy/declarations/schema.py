"""The `schema` block: attributes, their risk levels, and their categories."""

from __future__ import annotations

from modicum.core.document import Entries, Items, Node, Scalar, describe
from modicum.core.errors import Code
from modicum.core.flow_text import flow_text
from modicum.core.reader import Fields, Problems, choice, fail, name, nearest, text
from modicum.policy.model import Attribute, Level


def read_schema(node: Node) -> tuple[dict[str, Attribute], dict[str, str]]:
    """Return the attributes by name, and the risk level of every category.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    fields = Fields(node, "`schema`")
    categories: dict[str, str] = {}
    with found.guard():
        listed = fields.take_optional("categories")
        if listed is not None:
            for key, value in Fields(listed, "`categories`").rest():
                with found.guard():
                    category = name(key, "a category")
                    categories[category] = name(value, f"risk level of `{category}`")
    attributes: dict[str, Attribute] = {}
    with found.guard():
        for key, value in Fields(fields.take("attributes"), "`attributes`").rest():
            with found.guard():
                attribute = _attribute(key, value, categories)
                attributes[attribute.name] = attribute
    with found.guard():
        fields.finish()
    found.raise_any()
    return attributes, categories


def _attribute(key: Scalar, value: Node, categories: dict[str, str]) -> Attribute:
    own_name = name(key, "an attribute")
    _refuse_other_shapes(own_name, value)
    parts = value.items if isinstance(value, Items) else (value,)
    if not parts or len(parts) > 3:
        raise fail(
            Code.WRONG_TYPE,
            f"attribute `{own_name}` must be [risk level, {{category: membership}}]",
            value,
        )
    if len(parts) == 3 and text(parts[2], "the third part") != "static":
        raise fail(
            Code.UNKNOWN_CHOICE,
            f"{_shown(parts[2])} says nothing about attribute `{own_name}`",
            parts[2],
            label=nearest(_shown(parts[2]).strip("`"), ["static"]),
            help="the third part is  static , or left out",
        )
    risk = name(parts[0], f"the risk level of `{own_name}`")
    memberships: dict[str, Level] | None = None
    if len(parts) >= 2:
        memberships = {}
        for category_key, level in Fields(parts[1], f"attribute `{own_name}`").rest():
            category = choice(
                category_key, "category", categories, Code.UNKNOWN_CATEGORY
            )
            memberships[category] = read_level(level)
    return Attribute(own_name, risk, memberships, len(parts) == 3, key.mark)


def _refuse_other_shapes(own_name: str, node: Node) -> None:
    """Refuse ``{risk: low}``, ``[low, member]`` and ``[low, static]``.

    Raises:
        InputError: With how it is written.
    """
    meant = ""
    match node:
        case Entries(entries=entries):
            risks = [flow_text(value) for key, value in entries if "risk" in key.text]
            meant = risks[0] if risks else ""
        case Items(items=(risk, Scalar(text="static"))):
            meant = f"[{flow_text(risk)}, {{}}, static]"
        case Items(items=(risk, Scalar(text=category))):
            meant = f"[{flow_text(risk)}, {{{category}: {Level.MEMBER.value}}}]"
        case _:
            return
    written = flow_text(node)
    raise fail(
        Code.WRONG_TYPE,
        f"attribute `{own_name}` must be [risk level, {{category: membership}}]",
        node,
        help=f"write  {meant}  instead of  {written}" if meant else "",
    )


def _shown(node: Node) -> str:
    return f"`{node.text[:40]}`" if isinstance(node, Scalar) else describe(node)


def read_level(node: Node) -> Level:
    """Return a membership level.

    Raises:
        InputError: If it is not one.
    """
    words = [level.value for level in Level]
    return Level(choice(node, "membership level", words, Code.UNKNOWN_CHOICE))

"""Write the tables of docs/reference/json.md from the shapes of `modicum.api.schema`.

Run `.venv/bin/python tools/json_reference.py` after changing a shape; with `--check`
nothing is written, and the exit code says whether the page is current. Tables stand
between `<!-- shape: NAME -->` and `<!-- end -->`; `NAME in KEY` is a list of them.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union

from msgspec import UnsetType
from msgspec.structs import fields

from modicum.api import schema
from modicum.api.schema.shape import Amount, Shape, meanings

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "json.md"
_WORDS: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    Amount: "amount",
    type(None): "null",
}
_PLURALS = {"text": "texts", "integer": "integers", "number": "numbers"}
_TABLE = re.compile(
    r"(<!-- shape: (\w+)(?: in (\w+))? -->\n).*?(<!-- end -->\n)", re.DOTALL
)


def shapes() -> dict[str, type[Shape]]:
    """Return every shape, by name."""
    found: dict[str, type[Shape]] = {}
    for module in pkgutil.iter_modules(schema.__path__):
        loaded = importlib.import_module(f"{schema.__name__}.{module.name}")
        for name, one in vars(loaded).items():
            if isinstance(one, type) and issubclass(one, Shape) and one is not Shape:
                assert found.setdefault(name, one) is one, f"two shapes: {name}"
    return found


def rows(
    shape: type[Shape], sections: Mapping[str, str], before: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yield the key, the type and the meaning of each field, and of those within it.

    Args:
        shape: A shape.
        sections: The headings of the shapes that have a section of their own.
        before: What keys begin with.
    """
    meaning_of = meanings(shape)
    for field in fields(shape):
        key = f"{before}{field.encode_name}"
        meaning = meaning_of[field.name].removesuffix(".").replace("None", "null")
        meaning = meaning.replace("A code of Errors", "a code of [Errors](errors.md)")
        if not meaning[1:2].isupper():  # Such as SHA-256.
            meaning = meaning[:1].lower() + meaning[1:]
        inner, kind = _inner(field.type)
        heading = sections.get(inner.__name__) if inner is not None else None
        if heading:
            anchor = heading.lower().replace(" ", "-")
            meaning += f"; see [{heading}](#{anchor})"
        yield key, _type(field.type), meaning
        if inner is not None and not heading:
            yield from rows(inner, sections, f"{key}{kind}.")


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, without what stands for a missing key."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (Union, types.UnionType):
        return tuple(one for one in typing.get_args(kind) if one is not UnsetType)
    return (kind,)


def _type(kind: Any) -> str:
    return " or ".join(map(_word, _parts(kind)))


def _word(kind: Any) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:  # Where there are many, the meaning lists them.
        return " or ".join(f'`"{one}"`' for one in args) if len(args) < 4 else "text"
    if origin is typing.Annotated:
        return _word(args[0])
    if origin is tuple:
        item = _word(args[0])
        return f"list of {_PLURALS[item]}" if item in _PLURALS else "list"
    return _WORDS.get(kind, "object")


def _inner(kind: Any) -> tuple[type[Shape] | None, str]:
    """Return the shape within a type, and how a key leads to it."""
    for one in _parts(kind):
        origin, args = typing.get_origin(one), typing.get_args(one)
        if isinstance(one, type) and issubclass(one, Shape):
            return one, ""
        if origin is tuple and isinstance(args[0], type) and issubclass(args[0], Shape):
            return args[0], "[]"
        if origin is dict and isinstance(args[1], type) and issubclass(args[1], Shape):
            return args[1], ".*"
    return None, ""


def table(shape: type[Shape], listed: str | None, sections: Mapping[str, str]) -> str:
    """Return a table in Markdown.

    Args:
        shape: What it describes.
        listed: The key of the list that holds such; None if there is no list.
        sections: As for `rows`.
    """
    lines = ["| key | type | meaning |", "|---|---|---|"]
    if listed:
        first = inspect.cleandoc(shape.__doc__ or "").partition("\n")[0]
        lines.append(f"| `{listed}` | list | {first[:1].lower()}{first[1:-1]} |")
    before = f"{listed}[]." if listed else ""
    for key, kind, meaning in rows(shape, sections, before):
        cells = (f"`{key}`", kind, meaning.replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page with its tables written anew."""
    known, sections = shapes(), {}
    for part in text.split("\n## ")[1:]:
        for found in _TABLE.finditer(part):
            if not found[3]:
                sections[found[2]] = part.partition("\n")[0]

    def written(found: re.Match[str]) -> str:
        inner = table(known[found[2]], found[3], sections)
        return f"{found[1]}{inner}{found[4]}"

    return _TABLE.sub(written, text)


def main() -> None:
    """Write the page, or check it."""
    known = PAGE.read_text(encoding="utf-8")
    wanted = page(known)
    if "--check" in sys.argv[1:]:
        print(f"{PAGE.name} is {'current' if known == wanted else 'out of date'}")
        sys.exit(known != wanted)
    PAGE.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()

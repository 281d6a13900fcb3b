"""Reading programs that are sent to the escrow: a task of the catalogue, or code."""

from __future__ import annotations

import base64
import binascii
import re
from fractions import Fraction
from typing import Final

from modicum.core.canonical import Plain
from modicum.core.document import Entries, Items, Kind, Node, Scalar, describe
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.core.rationals import parse_number
from modicum.core.reader import boolean, choice, fail, items, line, number
from modicum.escrow.programs import CODE_BYTES_MAX, Program, Range
from modicum.escrow.task_files import TaskFile, read_task_file
from modicum.server.inputs.contract_schema import LANGUAGES

_RATIO: Final = re.compile(r"-?[0-9]{1,40}/[1-9][0-9]{0,39}")


def read_program(node: Node) -> Program | TaskFile:
    """Return the program that a form holds, or what the catalogue makes one of."""
    fields = Fields(node, "`program`")
    if "task" in fields or "evaluate" in fields:
        return read_task_file(node)
    written = fields.take_optional("language")
    language = "python"
    if written is not None:
        language = choice(written, "language", LANGUAGES, Code.UNKNOWN_CHOICE)
    code = _code(fields, CODE_BYTES_MAX["wasm"])
    low, high = _ends(fields.take("range"))
    arguments = fields.take_optional("arguments")
    catalogue = fields.take_optional("catalogue")
    compares = fields.take_optional("compares")
    fields.finish()
    return Program(
        "wasm" if language == "wasm" else "python",
        code,
        {} if arguments is None else _mapping(arguments),
        Range(low, high),
        compares is not None and boolean(compares, "`compares`"),
        "" if catalogue is None else line(catalogue, "`catalogue`"),
    )


def _code(fields: Fields, most: int) -> bytes:
    """Return the code of a program, which is sent as a text, or in base64."""
    plain, encoded = fields.take_optional("code"), fields.take_optional("code_base64")
    if (plain is None) is (encoded is None):
        message = "`program` has `code`, a text, or `code_base64`"
        raise fail(Code.KEYS_CONFLICT, message, fields.node, help="write one of both")
    given = encoded if plain is None else plain
    if not isinstance(given, Scalar) or given.kind is not Kind.TEXT:
        assert given is not None
        message = f"the code of a program is a text, got {describe(given)}"
        raise fail(Code.WRONG_TYPE, message, given)
    if len(given.text) > 2 * most:
        raise fail(Code.TOO_LARGE, "the code of a program is too long", given)
    if encoded is None:
        return given.text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(given.text, validate=True)
    except (binascii.Error, ValueError):
        raise fail(Code.NOT_TEXT, "`code_base64` is not base64", given) from None


def _ends(node: Node) -> tuple[Fraction, Fraction]:
    ends = items(node, "`range`")
    if len(ends) != 2:
        message = "`range` is the least and the greatest score"
        raise fail(Code.WRONG_TYPE, message, node)
    low, high = (amount(one, "an end of `range`") for one in ends)
    return low, high


def _mapping(node: Node) -> dict[str, Plain]:
    pairs = Fields(node, "`arguments`").rest()
    return {key.text: _plain(value) for key, value in pairs}


def _plain(node: Node) -> Plain:
    """Return a value as programs are given it: no fractions, which are texts there."""
    match node:
        case Items(items=listed):
            return [_plain(one) for one in listed]
        case Entries(entries=entries):
            return {key.text: _plain(value) for key, value in entries}
        case Scalar(kind=Kind.NUMBER):
            found = number(node, "an argument")
            if found.denominator != 1:
                raise fail(
                    Code.WRONG_TYPE,
                    "an argument of a program is no fraction",
                    node,
                    help='write it as a text, as in `"0.25"`',
                )
            return int(found)
        case Scalar(kind=Kind.BOOLEAN, text=written):
            return written.lower() == "true"
        case Scalar(kind=Kind.TEXT, text=written):
            return written
        case Scalar():
            return None


def amount(node: Node, what: str) -> Fraction:
    """Return a number; written as a text it stays exact, and may be a ratio."""
    if not isinstance(node, Scalar) or node.kind is not Kind.TEXT:
        return number(node, what)
    if _RATIO.fullmatch(node.text):
        return Fraction(node.text)
    found = parse_number(node.text)
    if found is None:
        message = f"{what} must be a number, got {describe(node)}"
        raise fail(Code.NOT_A_NUMBER, message, node)
    return found

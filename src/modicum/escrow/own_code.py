"""Programs that analysts write themselves."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from modicum.core.canonical import Plain, encode
from modicum.core.errors import Code, InputError, Problem
from modicum.escrow.arguments import Number, exact, mistake
from modicum.escrow.programs import CODE_BYTES_MAX, Program, Range

_PARAMETERS: Final = ("tables", "arguments", "reference")
_SHAPE: Final = "define `score(tables, arguments, reference)` at the top level"


def own(
    text: str | bytes,
    range: tuple[Number, Number] = (0, 1),  # noqa: A002 - the word users see
    arguments: Mapping[str, Plain] | None = None,
    *,
    compares: bool = False,
) -> Program:
    """Return a program in Python that an analyst wrote.

    It is parsed here, and run nowhere but in a sandbox. Its `score` is given `tables`,
    each a mapping with `columns`, a list of names, and `rows`, a list of lists; the
    arguments; and `reference`, which is None unless the program compares: then it is
    the private answers, and `tables` the exact ones. It returns a number, or None
    where there is no score.

    Args:
        text: Its text, which defines `score(tables, arguments, reference)`.
        range: The least and the greatest score.
        arguments: What it is given beside the tables; fractions as texts.
        compares: Whether it holds exact answers against the private ones.

    Raises:
        InputError: If it is not Python in UTF-8, is too long, does not define `score`
            so, or if its range or arguments are none.
    """
    code = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    given = dict(arguments or {})
    try:
        encode(given)
    except (TypeError, UnicodeEncodeError, RecursionError):
        raise mistake(
            Code.WRONG_TYPE,
            "`arguments` is made of texts, whole numbers, booleans, lists and mappings",
            'write a fraction as a text, as in `"0.25"`',
        ) from None
    found = Program("python", code, given, _range(range), compares)
    if not _has_score(parsed(code)):
        raise mistake(Code.NOT_A_PROGRAM, "the program has no `score`", _SHAPE)
    return found


def parsed(code: bytes) -> ast.Module:
    """Return a program as a tree.

    Args:
        code: Its text in UTF-8.

    Raises:
        InputError: If it is not UTF-8, not Python, or too long or too deep to be read.
    """
    if len(code) > CODE_BYTES_MAX["python"]:
        raise mistake(Code.TOO_LARGE, "the program is too long to be read")
    try:
        text = code.decode("utf-8")
    except UnicodeDecodeError:
        raise mistake(
            Code.NOT_A_PROGRAM, "the program is not in UTF-8", "save it as UTF-8"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Such as of escapes in its literals.
            return ast.parse(text)
    except SyntaxError as error:
        raise InputError(
            Problem(
                Code.NOT_A_PROGRAM,
                f"the program is not Python: line {error.lineno or 1}: {error.msg}",
                help="correct it there",
            )
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise mistake(
            Code.NOT_A_PROGRAM, "the program cannot be read as Python", "nest it less"
        ) from None


def _has_score(tree: ast.Module) -> bool:
    """Return whether a program defines `score` with its three parameters."""
    found = [
        one
        for one in tree.body
        if isinstance(one, ast.FunctionDef) and one.name == "score"
    ]
    if len(found) != 1:
        return False
    given = found[0].args
    names = tuple(one.arg for one in (*given.posonlyargs, *given.args))
    return names == _PARAMETERS and not given.kwonlyargs


def _range(ends: object) -> Range:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise mistake(
            Code.WRONG_TYPE,
            "`range` has two numbers: the least score, and the greatest",
            "write `range=(0, 1)`",
        )
    low, high = (Fraction(exact("range", one)) for one in ends)
    return Range(low, high)

"""Programs that analysts write themselves."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

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
    """Return an analyst's program in Python.

    It is parsed here, and run only in a sandbox. Its `score` receives `tables`, each a
    mapping with `columns`, a list of names, and `rows`, a list of lists; the arguments;
    and `reference`, which is None unless the program compares: then it is the private
    answers, and `tables` the exact ones. It returns a number, or None where there is no
    score.

    Args:
        text: Its text, which defines `score(tables, arguments, reference)`.
        range: The least and the greatest score.
        arguments: Its inputs besides the tables; fractions as texts.
        compares: Whether it compares exact answers with the private ones.

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
            "`arguments` may contain texts, integers, booleans, lists and mappings",
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
            Code.NOT_A_PROGRAM,
            "the program cannot be read as Python",
            "reduce its nesting",
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
            "`range` has two numbers: the minimum and the maximum score",
            "write `range=(0, 1)`",
        )
    low, high = (Fraction(exact("range", one)) for one in ends)
    return Range(low, high)


KindOfCode: TypeAlias = Literal[
    "import", "reach", "literal", "threshold", "cell", "bits", "unseen"
]


@dataclass(frozen=True, slots=True)
class CodeFinding:
    """A passage of a text.

    Attributes:
        line: Its line, from 1.
        kind: The kind of remark.
        text: The passage.
    """

    line: int
    kind: KindOfCode
    text: str


#: Modules that tasks need. Some parts of them use files or the network.
_USUAL: Final = frozenset(
    {
        "__future__",
        "collections",
        "decimal",
        "fractions",
        "functools",
        "itertools",
        "math",
        "numpy",
        "scipy",
        "sklearn",
        "statistics",
        "typing",
        "warnings",
    }
)
_UNUSUAL_PARTS: Final = frozenset(
    {"ctypeslib", "datasets", "distutils", "externals", "f2py", "io", "lib", "testing"}
)
_REACHING: Final = frozenset(
    {
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "getattr",
        "globals",
        "input",
        "locals",
        "memoryview",
        "object",
        "open",
        "setattr",
        "vars",
    }
)
_FILES: Final = frozenset(
    {
        "ctypes",
        "ctypeslib",
        "fromfile",
        "genfromtxt",
        "load",
        "loadtxt",
        "memmap",
        "open",
        "save",
        "savetxt",
        "savez",
        "tofile",
    }
)
_BITS: Final = frozenset(
    {"bin", "chr", "encode", "from_bytes", "hash", "hex", "ord", "tobytes", "view"}
)
_BIT_OPERATORS: Final = (ast.LShift, ast.RShift, ast.BitXor, ast.BitOr)
_EXTREMES: Final = frozenset({"item", "max", "min", "sorted", "amax", "amin"})
_TEXT_MAX: Final = 200
_DOCSTRING_MAX: Final = 2000
_DIGITS_MAX: Final = 18
_ITEMS_MAX: Final = 30
_LINE_MAX: Final = 120


def found_in(tree: ast.Module, text: str) -> Iterator[CodeFinding]:
    """Yield the passages to check."""
    yield from _unseen(text)
    constants = _named_constants(tree)
    described = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node)
        elif isinstance(node, ast.Attribute | ast.Name):
            yield from _reached(node)
        elif isinstance(node, ast.Constant):
            yield from _constant(node, is_docstring=id(node) in described)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            yield from _long(node)
        elif isinstance(node, ast.Compare):
            yield from _compared(node, constants)
        elif isinstance(node, ast.Subscript):
            yield from _one_cell(node)
        elif isinstance(node, ast.Return):
            yield from _extreme(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, _BIT_OPERATORS):
            yield CodeFinding(node.lineno, "bits", f"works with bits: `{_short(node)}`")


def _unseen(text: str) -> Iterator[CodeFinding]:
    """Yield characters that show as something else, and lines that leave the page."""
    for number, line in enumerate(text.split("\n"), 1):
        unprintable = {c for c in line if not (c.isprintable() or c in "\t\r")}
        if unprintable:
            listed = ", ".join(sorted(f"U+{ord(one):04X}" for one in unprintable))
            yield CodeFinding(number, "unseen", f"invisible characters: {listed}")
        if len(line) > _LINE_MAX:
            yield CodeFinding(number, "unseen", f"a line of {len(line):,} characters")


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[CodeFinding]:
    names = (
        [f"{node.module or ''}.{one.name}" for one in node.names]
        if isinstance(node, ast.ImportFrom)
        else [one.name for one in node.names]
    )
    if isinstance(node, ast.ImportFrom) and node.level:
        yield CodeFinding(node.lineno, "import", "uses a relative import")
        return
    for name in names:
        first, *rest = name.split(".")
        if first not in _USUAL or _UNUSUAL_PARTS & set(rest) or "*" in rest:
            yield CodeFinding(node.lineno, "import", f"imports `{name}`")


def _reached(node: ast.Attribute | ast.Name) -> Iterator[CodeFinding]:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    if not name.isascii():
        yield CodeFinding(node.lineno, "unseen", f"a name that is not ASCII: {name!a}")
    if name.startswith("__") or (isinstance(node, ast.Name) and name in _REACHING):
        yield CodeFinding(node.lineno, "reach", f"uses `{name}`")
    elif isinstance(node, ast.Attribute) and name in _FILES:
        yield CodeFinding(
            node.lineno, "reach", f"uses `.{name}`, which may touch files"
        )
    elif name in _BITS:
        yield CodeFinding(node.lineno, "bits", f"uses `{name}`")


def _constant(node: ast.Constant, *, is_docstring: bool) -> Iterator[CodeFinding]:
    value = node.value
    if isinstance(value, str | bytes):
        if len(value) > (_DOCSTRING_MAX if is_docstring else _TEXT_MAX):
            yield CodeFinding(
                node.lineno, "literal", f"a text of {len(value):,} characters"
            )
    elif isinstance(value, int) and abs(value) >= 10**_DIGITS_MAX:
        size = f"an integer of more than {_DIGITS_MAX} digits"
        yield CodeFinding(node.lineno, "literal", size)


def _long(node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> Iterator[CodeFinding]:
    many = len(node.values if isinstance(node, ast.Dict) else node.elts)
    if many > _ITEMS_MAX:
        yield CodeFinding(node.lineno, "literal", f"a list of {many:,} things")


def _compared(node: ast.Compare, constants: frozenset[str]) -> Iterator[CodeFinding]:
    """Yield a comparison with a chosen value: a constant, or an argument."""
    for side in (node.left, *node.comparators):
        if _is_chosen(side, constants):
            text = f"compares with a constant: `{_short(node)}`"
            yield CodeFinding(node.lineno, "threshold", text)
            return


def _is_chosen(side: ast.expr, constants: frozenset[str]) -> bool:
    return _is_constant(side) or any(
        isinstance(one, ast.Name) and (one.id == "arguments" or one.id in constants)
        for one in ast.walk(side)
    )


def _one_cell(node: ast.Subscript) -> Iterator[CodeFinding]:
    """Yield a row selected by position, such as `tables["t"]["rows"][0]`."""
    inner = node.value
    of_rows = (
        isinstance(inner, ast.Subscript)
        and isinstance(inner.slice, ast.Constant)
        and inner.slice.value == "rows"
    ) or (isinstance(inner, ast.Name) and inner.id == "rows")
    twice = isinstance(inner, ast.Subscript) and _is_place(inner.slice)
    if _is_place(node.slice) and (of_rows or twice):
        text = f"selects a row or cell by position: `{_short(node)}`"
        yield CodeFinding(node.lineno, "cell", text)


def _is_place(node: ast.expr) -> bool:
    plain = _unsigned(node)
    return isinstance(plain, ast.Constant) and type(plain.value) is int


def _unsigned(node: ast.expr) -> ast.expr:
    """Return an expression without the signs before it."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return node


def _extreme(node: ast.Return) -> Iterator[CodeFinding]:
    """Yield a return of what may be one cell."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = one.func
            name = getattr(called, "id", getattr(called, "attr", ""))
            if name in _EXTREMES:
                text = f"returns the result of `{name}`, which may be one cell"
                yield CodeFinding(node.lineno, "cell", text)
                return


def _named_constants(tree: ast.Module) -> frozenset[str]:
    """Return the names of constants anywhere in a program."""
    return frozenset(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_constant(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _is_constant(node: ast.expr) -> bool:
    """Return whether something is made of constants, and is none that all use."""
    plain = _unsigned(node)
    if isinstance(plain, ast.Constant):
        # Such as in `len(rows) == 0`, `count > 0` and `cell is None`.
        return not (plain.value is None or plain.value in (0, 1, ""))
    fixed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.List, ast.Tuple, ast.Set)
    parts = (one for one in ast.walk(node) if isinstance(one, ast.expr))
    return all(isinstance(one, fixed) for one in parts)


def _docstrings(tree: ast.Module) -> frozenset[int]:
    """Return the constants that are docstrings, by identity."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(id(first.value))
    return frozenset(found)


def _short(node: ast.expr) -> str:
    """Return the text of an expression, cut short."""
    if sum(1 for _ in ast.walk(node)) > 100:
        return "…"
    try:
        text = ast.unparse(node)
    except ValueError:  # A whole number of very many digits.
        return "…"
    return text if len(text) <= 60 else f"{text[:59]}…"

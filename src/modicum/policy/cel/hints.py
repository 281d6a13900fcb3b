"""Diagnosis of invalid CEL: the likely intention, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from modicum.accounting.mechanisms import MECHANISM_KINDS
from modicum.core.errors import Code
from modicum.core.reader import nearest
from modicum.policy.cel.fields import MECHANISM_FIELDS, RELEASE_FIELDS
from modicum.policy.cel.tokens import RELATIONS, Token, Tokens
from modicum.policy.cel.tree import CelError, Name, Place, Rewrite, outside
from modicum.release import Vocabulary

_SIGNS = {
    "&": "&&",
    "|": "||",
    "<>": "!=",
    "===": "==",
    "!==": "!=",
    "=<": "<=",
    "=>": ">=",
}
_WORDS = {"and": "&&", "or": "||"}
#: Functions that are written between two texts, as in SQL.
_INFIX = {
    "contains": "contains",
    "includes": "contains",
    "startswith": "startsWith",
    "starts_with": "startsWith",
    "endswith": "endsWith",
    "ends_with": "endsWith",
}
_OPERANDS = frozenset({"text", "word", "number"})
_CURLY = "“”„‘’«»"  # noqa: RUF001 - what word processors write


def syntax_error(source: str, at: Place) -> CelError:
    """Return the error for a text that is no CEL.

    Returns:
        An error that names the slip and its remedy, if it is a known one.
    """
    tokens = Tokens(source)
    if not tokens.all:
        return _error(
            (1, 1), "the predicate is empty", help="write  true  for every mechanism"
        )
    for find in (_printers_quotes, _open_quotes, _wrong_words, _open_brackets):
        for slip in find(tokens):
            return slip
    label, remedy = _why_here(tokens, at)
    return _error(at, label, help=remedy)


def negation_as_function(source: str) -> CelError:
    """Return the error for ``not(…)``, which reads like the call of a function."""
    tokens = Tokens(source)
    return next(_each(tokens, _negation_word), _error((1, 1), ""))


def chained(source: str, at: Place) -> CelError:
    """Return the error for ``1 <= x <= 3``."""
    tokens = Tokens(source)
    for index, token in enumerate(tokens.all):
        if token.text not in RELATIONS:
            continue
        middle = tokens.reach(index, 1, ends=RELATIONS)
        second = tokens.at(middle + 1)
        if middle == index or second is None or second.text not in RELATIONS:
            continue
        first, last = tokens.reach(index, -1), tokens.reach(middle + 1, 1)
        old = tokens.cut(first, last)
        joined = f"{tokens.cut(first, middle)} && {tokens.cut(index + 1, last)}"
        return _error(
            tokens.place(second.start),
            "comparisons cannot be chained",
            Rewrite(old, joined),
            code=Code.CEL_SUBSET,
        )
    return _error(at, "a chained comparison", code=Code.CEL_SUBSET)


def _error(
    at: Place,
    label: str,
    rewrite: Rewrite | None = None,
    *,
    help: str = "",  # noqa: A002 - the word users see
    code: Code = Code.CEL_SYNTAX,
) -> CelError:
    subset = "this is outside the CEL subset of this version"
    message = "CEL syntax error" if code is Code.CEL_SYNTAX else subset
    error = CelError(code, message, at, label=label, help=help)
    return error.mended_by(rewrite)


# --- quotes -----------------------------------------------------------------------


def _printers_quotes(tokens: Tokens) -> Iterator[CelError]:
    for token in tokens.all:
        if token.kind == "curly":
            inside = tokens.source[token.end :]
            length = next(
                (place for place, one in enumerate(inside) if one in _CURLY), None
            )
            rewrite = None
            if length is not None:
                old = token.text + inside[: length + 1]
                rewrite = Rewrite(old, f'"{inside[:length]}"')
            yield _error(
                tokens.place(token.start),
                "a text needs straight quotes",
                rewrite,
                help='write  "  instead of  ' + token.text,
            )


def _open_quotes(tokens: Tokens) -> Iterator[CelError]:
    for index, token in enumerate(tokens.all):
        if token.kind != "quote":
            continue
        quote = token.text
        only = sum(one.text.count(quote) for one in tokens.all) == 1
        last = _bare_end(tokens, index)
        rewrite = None
        if last > index:
            old = tokens.cut(index, last)
            rewrite = Rewrite(old, old + quote)
        elif only and index and tokens.all[index - 1].kind == "word":
            old = tokens.cut(index - 1, index)
            rewrite = Rewrite(old, quote + old)
        yield _error(
            tokens.place(token.start),
            "this quote is never closed",
            rewrite,
            help=f"close the text with {quote} ; a quote inside it is"
            f" written \\{quote}",
        )


def _bare_end(tokens: Tokens, index: int) -> int:
    """Return the last token that touches the one before it, from a quote on."""
    while (token := tokens.at(index + 1)) is not None:
        touches = token.start == tokens.all[index].end
        if not touches or (token.kind == "sign" and token.text not in "-./_"):
            break
        index += 1
    return index


# --- words and signs --------------------------------------------------------------

_Finder = Callable[[Tokens, int], "CelError | None"]


def _each(tokens: Tokens, *finders: _Finder) -> Iterator[CelError]:
    for index in range(len(tokens.all)):
        for find in finders:
            slip = find(tokens, index)
            if slip is not None:
                yield slip


def _wrong_words(tokens: Tokens) -> Iterable[CelError]:
    return _each(
        tokens,
        _negation_word,
        _equality_word,
        _joining_word,
        _sign,
        _list_in_parentheses,
        _function_between,
    )


def _negation_word(tokens: Tokens, index: int) -> CelError | None:
    """Find ``not x`` and ``x not in y``."""
    token = tokens.word(index, {"not"})
    behind = tokens.at(index + 1)
    if token is None or behind is None:
        return None
    last = tokens.reach(index, 1)
    at = tokens.place(token.start)
    label = f"CEL has no word `{token.text}`"
    if behind.is_word({"in"}):
        first = tokens.reach(index, -1)
        left, right = tokens.cut(first, index - 1), tokens.cut(index + 2, last)
        return _error(
            at, label, Rewrite(tokens.cut(first, last), f"!({left} in {right})")
        )
    inner = tokens.cut(index + 1, last)
    wrapped = tokens.partner.get(index + 1) == last
    new = f"!{inner}" if wrapped else f"!({inner})"
    return _error(at, label, Rewrite(tokens.cut(index, last), new))


def _equality_word(tokens: Tokens, index: int) -> CelError | None:
    """Find ``x is y`` and ``x is not y``."""
    token = tokens.word(index, {"is"})
    if token is None or not index:
        return None
    denied = tokens.word(index + 1, {"not"}) is not None
    old = tokens.cut(index, index + denied)
    return _error(
        tokens.place(token.start),
        f"CEL has no word `{token.text}`",
        Rewrite(old, "!=" if denied else "=="),
    )


def _joining_word(tokens: Tokens, index: int) -> CelError | None:
    token = tokens.word(index, _WORDS)
    if token is None:
        return None
    return _error(
        tokens.place(token.start),
        f"CEL has no word `{token.text}`",
        Rewrite(token.text, _WORDS[token.text.lower()]),
    )


def _sign(tokens: Tokens, index: int) -> CelError | None:
    token = tokens.all[index]
    at = tokens.place(token.start)
    if token.text == "=":
        label = 'expected an operator; "=" is not CEL'
        return _error(at, label, help='compare with "=="')
    if token.text == ";":
        return _error(at, "a predicate has no terminator", help="leave it out")
    if token.text not in _SIGNS:
        return None
    label = f"CEL has no operator `{token.text}`"
    return _error(at, label, Rewrite(token.text, _SIGNS[token.text]))


def _list_in_parentheses(tokens: Tokens, index: int) -> CelError | None:
    """Find ``x in ("a", "b")`` and ``x in {"a", "b"}``."""
    last = tokens.partner.get(index + 1)
    if tokens.word(index, {"in"}) is None or last is None:
        return None
    opening = tokens.all[index + 1]
    commas = any(one.text == "," for one in tokens.all[index + 2 : last])
    if opening.text == "[" or (opening.text == "(" and not commas):
        return None
    old = tokens.cut(index + 1, last)
    return _error(
        tokens.place(opening.start),
        "a list needs square brackets",
        Rewrite(old, f"[{old[1:-1].strip()}]"),
    )


def _function_between(tokens: Tokens, index: int) -> CelError | None:
    """Find ``m.attributes contains "age"``."""
    token = tokens.word(index, _INFIX)
    before, behind = tokens.at(index - 1), tokens.at(index + 1)
    if token is None or before is None or behind is None:
        return None
    if before.kind not in _OPERANDS or behind.kind not in _OPERANDS:
        return None
    first, last = tokens.reach(index, -1), tokens.reach(index, 1)
    left, right = tokens.cut(first, index - 1), tokens.cut(index + 1, last)
    function = _INFIX[token.text.lower()]
    new = f"{left}.{function}({right})"
    if left.endswith(".attributes") and function == "contains":
        new = f"{right} in {left}"
    return _error(
        tokens.place(token.start),
        f"`{token.text}` needs two operands",
        Rewrite(tokens.cut(first, last), new),
    )


# --- brackets, and the rest -------------------------------------------------------


def _open_brackets(tokens: Tokens) -> Iterator[CelError]:
    for index in tokens.lonely:
        token = tokens.all[index]
        at = tokens.place(token.start)
        closing = {"(": ")", "[": "]", "{": "}"}.get(token.text)
        if closing is None:
            yield _error(at, "there is nothing to close", help="leave it out")
        else:
            old = tokens.cut(index, _held_by(tokens, index))
            yield _error(
                at, "this bracket is never closed", Rewrite(old, old + closing)
            )


def _held_by(tokens: Tokens, index: int) -> int:
    """Return the last token that an unclosed bracket most likely contains."""
    before = tokens.at(index - 1)
    if before is not None and before.kind == "word":  # A call: its arguments.
        return tokens.reach(index, 1, ends=RELATIONS)
    return len(tokens.all) - 1


def _why_here(tokens: Tokens, at: Place) -> tuple[str, str]:
    """Return what is wrong where the parser stopped, and the remedy."""
    index = next(
        (
            index
            for index, token in enumerate(tokens.all)
            if tokens.place(token.end) > at
        ),
        len(tokens.all) - 1,
    )
    token, before = tokens.all[index], tokens.at(index - 1)
    if index == len(tokens.all) - 1 and _wants_more(token):
        return "an operand is missing after this", "write the other operand"
    if before is not None and before.kind in _OPERANDS and token.kind in _OPERANDS:
        remedy = "join two comparisons with && or ||"
        return "an operator is missing before this", remedy
    return "this is not allowed here", "see docs/reference/cel.md"


def _wants_more(token: Token) -> bool:
    return (token.kind == "sign" and token.text not in ")]}") or token.is_word({"in"})


#: Names of the subset's functions in other languages.
_FUNCTIONS = {
    "len": "size",
    "length": "size",
    "count": "size",
    "any": "exists",
    "some": "exists",
    "every": "all",
    "forall": "all",
    "startswith": "startsWith",
    "starts_with": "startsWith",
    "endswith": "endsWith",
    "ends_with": "endsWith",
    "includes": "contains",
    "include": "contains",
    "exists_one": "exists",
}
_KNOWN_FUNCTIONS = (
    *("exists", "all", "size", "has"),
    *("startsWith", "endsWith", "contains"),
)
#: Functions of CEL that the subset excludes on purpose: no suggestion applies.
_LEFT_OUT = frozenset({"exists_one", "map", "filter", "matches", "timestamp"})


def bare_word(
    name: Name, vocabulary: Vocabulary, known: Mapping[str, object], *, compared: bool
) -> CelError:
    """Return the error for a word that is no variable.

    Args:
        name: The word.
        vocabulary: The vocabulary of the policy.
        known: The variables that there are.
        compared: Whether it is compared with a field, and so most likely a text.
    """
    variables = sorted({"m", "release", *known})
    suggestion = _suggestion(name.name, vocabulary, compared=compared)
    error = CelError(
        Code.CEL_TYPE,
        f'unknown variable "{name.name[:60]}" in the predicate',
        name.at,
        label="" if suggestion else nearest(name.name, variables),
        help="known: " + ", ".join(variables),
    )
    return error.mended_by(Rewrite(name.name, suggestion) if suggestion else None)


def _suggestion(word: str, vocabulary: Vocabulary, *, compared: bool) -> str:
    """Return the rewrite of a bare word; empty if it cannot be guessed."""
    is_known = word in known_names(vocabulary)
    if word.lower() in {"true", "false"} and not is_known:
        return "" if compared else word.lower()
    if compared and is_known:
        return f'"{word}"'
    if word in vocabulary.labels or word in MECHANISM_FIELDS:
        return f"m.{word}"
    if word in RELEASE_FIELDS:
        return f"release.{word}"
    return f'"{word}"' if is_known or compared else ""


def known_names(vocabulary: Vocabulary) -> frozenset[str]:
    """Return every quoted word of a closed kind that a predicate may contain."""
    values = (value for label in vocabulary.labels.values() for value in label.values)
    return frozenset(
        {*values, *vocabulary.attributes, *vocabulary.units, *MECHANISM_KINDS}
    )


def word_with_dashes(source: str, vocabulary: Vocabulary) -> CelError | None:
    """Return the error for an unquoted known word with dashes.

    CEL reads ``black-box`` as a subtraction, which the subset does not have.
    """
    tokens, known = Tokens(source), known_names(vocabulary)
    for index, token in enumerate(tokens.all):
        last = _dashed(tokens, index)
        word = tokens.cut(index, last)
        if last == index or word not in known:
            continue
        before = tokens.at(index - 1)
        old, new = word, f'"{word}"'
        if before is not None and before.text == ".":
            old, new = f".{word}", f'["{word}"]'
        reason = "a dash is a minus sign; write a text in quotes"
        error = outside(tokens.place(token.start), reason)
        return error.mended_by(Rewrite(old, new))
    return None


def _dashed(tokens: Tokens, index: int) -> int:
    """Return the last token of ``a-b-c``, which has no spaces."""
    if tokens.all[index].kind != "word":
        return index
    while _touching(tokens, index, "-") and _touching(tokens, index + 1, None):
        index += 2
    return index


def _touching(tokens: Tokens, index: int, sign: str | None) -> Token | None:
    """Return the next token without a space: this sign, or any word."""
    behind = tokens.at(index + 1)
    if behind is None or behind.start != tokens.all[index].end:
        return None
    fits = behind.text == sign if sign else behind.kind in ("word", "number")
    return behind if fits else None


def unknown_function(function: str, at: tuple[int, int]) -> CelError | None:
    """Return the error for a function that is called otherwise in CEL."""
    if function in _KNOWN_FUNCTIONS or function in _LEFT_OUT:
        return None
    suggestion = _FUNCTIONS.get(function.lower())
    if suggestion is None:
        near = nearest(function, _KNOWN_FUNCTIONS)
        suggestion = near.split('"')[1] if near else None
    error = outside(at, f"unknown function `{function[:60]}`")
    if suggestion is not None:
        error.rewrite = Rewrite(f"{function}(", f"{suggestion}(")
    return error

"""What a word without quotes, or the name of a function, was meant to be."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.core.errors import Code
from modicum.core.reader import nearest
from modicum.policy.cel.fields import MECHANISM_FIELDS, RELEASE_FIELDS
from modicum.policy.cel.tokens import Token, Tokens
from modicum.policy.cel.tree import CelError, Name, Rewrite, outside
from modicum.policy.implication.worlds import MECHANISM_KINDS
from modicum.release import Vocabulary

#: What other languages call the functions of the subset.
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
#: Functions of CEL that the subset leaves out on purpose: nothing near is meant.
_LEFT_OUT = frozenset({"exists_one", "map", "filter", "matches", "timestamp"})


def bare_word(
    name: Name, vocabulary: Vocabulary, known: Mapping[str, object], *, compared: bool
) -> CelError:
    """Return the error for a word that is no variable.

    Args:
        name: The word.
        vocabulary: The words of the policy.
        known: The variables that there are.
        compared: Whether it is compared with a field, and so most likely a text.
    """
    variables = sorted({"m", "release", *known})
    meant = _meant(name.name, vocabulary, compared=compared)
    error = CelError(
        Code.CEL_TYPE,
        f'unknown variable "{name.name[:60]}" in the predicate',
        name.at,
        label="" if meant else nearest(name.name, variables),
        help="known: " + ", ".join(variables),
    )
    return error.mended_by(Rewrite(name.name, meant) if meant else None)


def _meant(word: str, vocabulary: Vocabulary, *, compared: bool) -> str:
    """Return what to write for a bare word; nothing if that cannot be guessed."""
    said = word in known_words(vocabulary)
    if word.lower() in {"true", "false"} and not said:
        return "" if compared else word.lower()
    if compared and said:
        return f'"{word}"'
    if word in vocabulary.labels or word in MECHANISM_FIELDS:
        return f"m.{word}"
    if word in RELEASE_FIELDS:
        return f"release.{word}"
    return f'"{word}"' if said or compared else ""


def known_words(vocabulary: Vocabulary) -> frozenset[str]:
    """Return every word that a predicate may say in quotes, of a closed kind."""
    values = (value for label in vocabulary.labels.values() for value in label.values)
    return frozenset(
        {*values, *vocabulary.attributes, *vocabulary.units, *MECHANISM_KINDS}
    )


def word_with_dashes(source: str, vocabulary: Vocabulary) -> CelError | None:
    """Return the error for a known word with dashes that stands without quotes.

    CEL reads ``black-box`` as a subtraction, which the subset does not have.
    """
    tokens, known = Tokens(source), known_words(vocabulary)
    for index, token in enumerate(tokens.all):
        last = _dashed(tokens, index)
        word = tokens.cut(index, last)
        if last == index or word not in known:
            continue
        before = tokens.at(index - 1)
        old, new = word, f'"{word}"'
        if before is not None and before.text == ".":
            old, new = f".{word}", f'["{word}"]'
        reason = "a dash takes one thing from another; a text stands in quotes"
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
    """Return what follows without a space: this sign, or any word."""
    behind = tokens.at(index + 1)
    if behind is None or behind.start != tokens.all[index].end:
        return None
    fits = behind.text == sign if sign else behind.kind in ("word", "number")
    return behind if fits else None


def unknown_function(function: str, at: tuple[int, int]) -> CelError | None:
    """Return the error for a function that is called otherwise in CEL.

    Args:
        function: Its name, as written.
        at: Where the call stands.
    """
    if function in _KNOWN_FUNCTIONS or function in _LEFT_OUT:
        return None
    meant = _FUNCTIONS.get(function.lower())
    if meant is None:
        near = nearest(function, _KNOWN_FUNCTIONS)
        meant = near.split('"')[1] if near else None
    error = outside(at, f"there is no function `{function[:60]}`")
    if meant is not None:
        error.rewrite = Rewrite(f"{function}(", f"{meant}(")
    return error

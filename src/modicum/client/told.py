"""What a server answers, as the shapes of `api.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from modicum.api.schema.release import Decision, DecisionText
from modicum.api.schema.shape import convert
from modicum.client.problems import not_understood
from modicum.core.errors import UnavailableError

T = TypeVar("T")


def decoded(kind: type[T], document: object) -> T:
    """Return an answer as a shape; keys that this version does not know are ignored.

    Args:
        kind: The shape.
        document: The answer.

    Raises:
        UnavailableError: If it does not have that shape.
    """
    try:
        return convert(document, kind)
    except msgspec.ValidationError as error:
        raise not_understood(str(error)).alone() from None


def decision_in(told: Any) -> Decision:
    """Return a decision without its prose, which another version may form otherwise.

    Args:
        told: What a server told.

    Raises:
        UnavailableError: If it is not of that form.
    """
    if isinstance(told, dict):
        told = {key: value for key, value in told.items() if key != "words"}
    return decoded(Decision, told)


def text_of(told: Mapping[str, Any]) -> DecisionText:
    """Return the prose of a decision; none if it is missing, or of another form.

    Args:
        told: What a server told.
    """
    words = told.get("words")
    if isinstance(words, dict):
        # The rest is not shown, and another version may form it otherwise.
        words = {key: words[key] for key in ("reasons", "added") if key in words}
    try:
        return decoded(DecisionText, words)
    except UnavailableError:
        return DecisionText()

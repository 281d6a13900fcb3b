"""Reading what is sent: exactly, as files are read, and only so much of it."""

from __future__ import annotations

from typing import Final

import anyio.to_thread
from starlette.requests import Request

from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.shell.json_lines import plain_of
from modicum.shell.yaml_pieces import Piece
from modicum.workspace.answers import Description

#: What the content of a request is called in messages.
BODY: Final = "request"

_JSON: Final = frozenset({"application/json", ""})
_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})


#: A form, such as a reason, has so many bytes at most.
FORM_BYTES: Final = 2**17
#: So many bytes are read with their places at most: that takes seconds for a megabyte.
TREE_BYTES: Final = 2**18


async def form_of(request: Request) -> Node:
    """Return a form that was sent, read beside all others.

    Args:
        request: The request.

    Raises:
        InputError: If it is too large, of a kind that is not read, or no document.
    """
    body = await body_of(request)
    if len(body.text) > FORM_BYTES:
        raise _too_large(FORM_BYTES)
    return await anyio.to_thread.run_sync(body.form)


async def body_of(request: Request) -> Body:
    """Return what was sent; how much it may be is seen to before (see `limits`).

    Args:
        request: The request.

    Raises:
        InputError: If it is of a kind that is not read.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _JSON | _YAML:
        raise InputError(
            Problem(
                Code.NOT_ACCEPTED,
                f"a body of type `{kind[:60]}` is not read",
                help="send application/json or application/yaml",
            )
        )
    return Body(await request.body(), is_json=kind in _JSON)


class Body:
    """What was sent.

    Args:
        text: Its bytes.
        is_json: Whether it says that it is JSON, else it is YAML.
    """

    def __init__(self, text: bytes, *, is_json: bool) -> None:
        self.text = text
        self._piece = Piece(text, BODY)
        self._is_json = is_json

    def description(self) -> Description:
        """Return it as plain data, where that says the same and is quicker to have.

        Raises:
            InputError: If it is not one document.
        """
        plain = plain_of(self._piece) if self._is_json else None
        return self.tree() if plain is None else plain

    def tree(self) -> Node:
        """Return it as a tree that knows its places. It takes long if there is much.

        Raises:
            InputError: If it is not one document, or too large to be read so.
        """
        if not self.text.strip():
            raise InputError(
                Problem(
                    Code.EMPTY_DOCUMENT,
                    "the request has no body",
                    help="send JSON or YAML; /api/v1/openapi.json says in which form",
                )
            )
        if len(self.text) > TREE_BYTES:
            raise _too_large(TREE_BYTES)
        return self._piece.read()

    def form(self) -> Node:
        """Return it as a tree; one that was sent as plain JSON knows no places.

        Raises:
            InputError: If it is not one document.
        """
        found = self.description()
        return from_python(found) if isinstance(found, dict) else self.tree()


def _too_large(most: int) -> InputError:
    return InputError(
        Problem(
            Code.TOO_LARGE,
            f"what was sent is read up to {most} bytes in this form",
            help="say less at once, or send it as JSON",
        )
    )

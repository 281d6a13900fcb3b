"""Reading what is sent: exactly, as files are read, and only so much of it.

YAML is read slowly, in Python: a document takes up to a second for each 64 KiB, in
which every other thread waits for its turn. So nothing is read of whoever may not do
what they ask for; YAML may be small only; and one document is read at a time.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from modicum.api.local.evaluation import Description
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.ops.files.json_lines import plain_of
from modicum.ops.files.yaml_documents import Piece

#: What the content of a request is called in messages.
BODY: Final = "request"

_JSON: Final = frozenset({"application/json", ""})
_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})


#: A form, such as a reason, has so many bytes at most.
FORM_BYTES: Final = 2**17
#: So many bytes of YAML are read at most, and of JSON with the places of mistakes.
TREE_BYTES: Final = 2**16
#: So many values may stand in them, those that aliases repeat included.
TREE_NODES: Final = 2**15


async def form_of(request: Request, who: Identity, *actions: Action) -> Node:
    """Return a form that was sent.

    Args:
        request: The request.
        who: Who asks.
        actions: What they want to do with it: one of these.

    Raises:
        AccessError: If they may do none of these, for no data set at all.
        InputError: If it is too large, of a kind that is not read, or no document.
    """
    body = await body_of(request, who, *actions)
    if len(body.text) > FORM_BYTES:
        raise _too_large(FORM_BYTES)
    form: Node = await request.app.state.parts.service.threads.form(who.name, body)
    return form


async def body_of(request: Request, who: Identity, *actions: Action) -> Body:
    """Return what was sent; how much it may be is seen to before (see `limits`).

    Args:
        request: The request.
        who: Who asks.
        actions: What they want to do with it: one of these. They are looked at before
            anything is received.

    Raises:
        AccessError: If they may do none of these, for no data set at all.
        InputError: If it is of a kind that is not read, or too much YAML.
    """
    who.must_some(*actions)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _JSON | _YAML:
        raise InputError(
            Problem(
                Code.NOT_ACCEPTED,
                f"a body of type `{kind[:60]}` is not read",
                help="send application/json or application/yaml",
            )
        )
    body = Body(await request.body(), is_json=kind in _JSON)
    if not body.is_json and len(body.text) > TREE_BYTES:
        raise _too_large(TREE_BYTES)
    return body


class Body:
    """What was sent.

    Args:
        text: Its bytes.
        is_json: Whether it says that it is JSON, else it is YAML.
    """

    def __init__(self, text: bytes, *, is_json: bool) -> None:
        self.text = text
        self.is_json = is_json
        self._tree: Node | None = None

    def description(self) -> Description:
        """Return it as it was read, or as plain data, which is quick to have.

        Raises:
            InputError: If only its tree can tell what it says, or what is wrong.
        """
        if self._tree is not None:
            return self._tree
        plain = plain_of(Piece(self.text, BODY)) if self.is_json else None
        if plain is None:
            raise _too_large(TREE_BYTES)
        return plain

    def tree(self) -> Node:
        """Return it as a tree that knows its places: within `Threads.read` only.

        Raises:
            InputError: If it is not one document, or too large to be read so.
        """
        if not self.small().strip():
            raise InputError(
                Problem(
                    Code.EMPTY_DOCUMENT,
                    "the request has no body",
                    help="send JSON or YAML; /api/v1/openapi.json says in which form",
                )
            )
        if self._tree is None:
            self._tree = read_document(self.text, BODY, TREE_NODES)
        return self._tree

    def small(self) -> bytes:
        """Return its text, if that is little enough to be read as a tree.

        Raises:
            InputError: If it is not.
        """
        if len(self.text) > TREE_BYTES:
            raise _too_large(TREE_BYTES)
        return self.text


def _too_large(most: int) -> InputError:
    return InputError(
        Problem(
            Code.TOO_LARGE,
            f"what was sent is read up to {most} bytes in this form",
            help="send it as JSON, without mistakes, or say less at once",
        )
    )

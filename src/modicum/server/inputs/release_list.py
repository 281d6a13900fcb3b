"""The releases of a batch: each is read as a single one would be."""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from modicum.api.operations import BATCH_MAX
from modicum.core.errors import Code, InputError, Problem
from modicum.server.inputs.body import Body

_SPACE: Final = rb"[ \t\r\n]*"
#: An object with one key. A second one would be a part of the list, which is then none.
_OBJECT: Final = re.compile(
    rb'%s\{%s("(?:[^"\\]|\\.)*+")%s:%s(\[.*\])%s\}%s' % ((_SPACE,) * 6), re.DOTALL
)


def releases_in(text: bytes) -> list[Body]:
    """Return the releases of a batch in JSON, not yet read themselves.

    Args:
        text: The body of the request.

    Raises:
        InputError: If it has another form, or too few or too many releases.
    """
    found = _OBJECT.fullmatch(text)
    try:
        if found is None or json.loads(found[1]) != "releases":
            raise _malformed()
        each = msgspec.json.decode(found[2], type=list[msgspec.Raw])
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not 1 <= len(each) <= BATCH_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a batch has 1 to {BATCH_MAX} releases, not {len(each)}",
                notes=("nothing was changed",),
                help="send them in several requests, each with its own key",
            )
        )
    return [Body(bytes(one), is_json=True) for one in each]


def _malformed() -> InputError:
    return InputError(
        Problem(
            Code.BAD_REQUEST,
            "the body is not a JSON object with the single key `releases`, a list",
            notes=("nothing was changed",),
            help='send  {"releases": [{…}, {…}]}',
        )
    )

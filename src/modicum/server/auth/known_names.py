"""The names that a ledger knows, which a new name must not look like."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from modicum.api.ports.storage import Store
from modicum.core.confusables import confusable, keys
from modicum.core.reader import Fields
from modicum.core.yaml_reader import read_document
from modicum.policy.declarations.roles import person_key, read_roles


class _Event(msgspec.Struct, frozen=True):
    actor: str
    kind: str
    body: msgspec.Raw


class _Line(msgspec.Struct, frozen=True):
    event: _Event


class _PolicyBody(msgspec.Struct, frozen=True):
    text: str


#: How records begin, up to the actor, and go on behind it: payloads are canonical.
_BEGINNING: Final = b'{"event":{"actor":"'
_BEHIND: Final = b',"at":"'
_ACTIVATED: Final = "policy-activated"
_LINES = msgspec.json.Decoder(_Line)
_POLICIES = msgspec.json.Decoder(_PolicyBody)


class KnownNames:
    """The actors of a log, those who can act in it, and the people of its policy.

    The log is read once, and then from where that ended. Any thread may use it.

    Args:
        store: The store of the log.
        beside: Returns the owners of tokens and sessions.
    """

    def __init__(self, store: Store, beside: Callable[[], Iterable[str]]) -> None:
        self._store = store
        self._beside = beside
        self._guard = threading.Lock()
        self._seq = 0
        self._beginnings: set[bytes] = set()
        self._actors: set[str] = set()
        self._earliest: dict[str, str] = {}
        self._people: tuple[str, ...] = ()

    def lookalike_of(self, name: str, named: Iterable[str] = ()) -> str | None:
        """Return a known name that people may take for a new one; None if none is.

        A name that acted, or can, is not new: the first one stays. Names that differ in
        capitals only are one person's, and the same.

        Args:
            name: The name.
            named: Further known names.
        """
        name = person_key(name)
        with self._guard:
            self._follow()
            beside = {*map(person_key, self._beside())}
            if name in self._actors or name in beside:
                return None
            for key in sorted(keys(name)):
                if key in self._earliest:
                    return self._earliest[key]
            others = sorted({*beside, *self._people, *map(person_key, named)})
        return next((one for one in others if confusable(one, name)), None)

    def _follow(self) -> None:
        policy = None
        for record in self._store.read(self._seq):
            self._seq = record.seq
            beginning, marker, _ = record.payload.partition(_BEHIND)
            is_known = marker and beginning in self._beginnings
            if is_known and _ACTIVATED.encode() not in record.payload:
                continue
            if beginning.startswith(_BEGINNING):
                self._beginnings.add(beginning)
            try:
                event = _LINES.decode(record.payload).event
            except msgspec.MsgspecError:
                continue  # A damaged log is refused by those who decide.
            actor = person_key(event.actor)
            if actor not in self._actors:
                self._actors.add(actor)
                for key in keys(actor):
                    self._earliest.setdefault(key, actor)
            if event.kind == _ACTIVATED:
                policy = bytes(event.body)
        if policy is not None:
            text = _POLICIES.decode(policy).text
            fields = Fields(read_document(text.encode(), "the policy"), "the policy")
            roles = read_roles(fields.take_optional("roles")) or {}
            self._people = tuple(person_key(p) for each in roles.values() for p in each)

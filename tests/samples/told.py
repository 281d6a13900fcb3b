"""What the answers of a server told, so that calls can be about what is there."""

from __future__ import annotations

import random
import re
from collections import defaultdict, deque
from typing import Any, Final

#: What all addresses of the API begin with.
PREFIX: Final = "/api/v1"
#: So many of the values told last are asked about again.
_RECENT: Final = 12
#: Parameters whose values go by another name in answers.
_TOLD_AS: Final = {"cursor": "next"}


class Told:
    """What answers told: the values of each key, by the resource they are of."""

    def __init__(self) -> None:
        self._values: defaultdict[tuple[str, str], deque[Any]] = defaultdict(
            lambda: deque(maxlen=_RECENT)
        )
        self._tags: dict[str, str] = {}

    def hear(self, path: str, answer: Any, tag: str | None, method: str) -> None:
        """Remember an answer."""
        if tag and method == "GET":
            self._tags[path] = tag
        self._walk(_resource(path), answer)

    def _walk(self, resource: str, node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                self._walk(resource, one)
        elif isinstance(node, dict):
            for key, value in node.items():
                if isinstance(value, str | int) and not isinstance(value, bool):
                    for at in (resource, ""):
                        known = self._values[at, key]
                        if value not in known:
                            known.append(value)
                else:
                    self._walk(resource, value)

    def value(self, path: str, name: str, rng: random.Random) -> Any:
        """Return a value for a parameter; None if nothing was told."""
        resource = _resource(path)
        wanted = _TOLD_AS.get(name, name)
        found = [*self._values[resource, "id"], *self._values[resource, wanted]]
        found = found or [*self._values["", wanted]]
        if name != "text":  # Names stand in one line; a file does not.
            found = [one for one in found if "\n" not in str(one)]
        return rng.choice(found) if found else None

    def tag(self, path: str, rng: random.Random) -> str | None:
        """Return the tag of what an address is about, or of what is around that."""
        ends = [one.start() for one in re.finditer("[/:]", path)][3:]
        found = [self._tags.get(path[:end]) for end in (*ends, len(path))]
        tags = [one for one in found if one]
        return rng.choice(tags) if tags else None


def _resource(path: str) -> str:
    return re.split("[/:]", path.removeprefix(PREFIX).strip("/"))[0]

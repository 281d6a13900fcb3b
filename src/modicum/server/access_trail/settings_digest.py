"""Digests of settings: whether they changed, and which, and nothing of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from modicum.core.canonical import Plain, digest, encode
from modicum.server.settings.model import Settings

#: A user and a password in a URL. Passwords are not even in a digest, by which a weak
#: one could be guessed.
_USER: Final = re.compile(r"(?<=//).*@")
_QUERY: Final = re.compile(r"\?.*", re.DOTALL)


def settings_digests(settings: Settings) -> dict[str, str]:
    """Return the digest of each setting by its name, and of all of them by ``."""
    parts = {
        one.name: digest(encode(_plain(getattr(settings, one.name))))[:16]
        for one in fields(settings)
    }
    return {"": digest(encode(parts))[:16], **parts}


def _plain(value: Any) -> Plain:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(str(_plain(one)) for one in value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    text = _USER.sub("", str(value))
    return _QUERY.sub("", text) if "://" in text else text

"""Addresses of this server's own pages, for whoever is sent on."""

from __future__ import annotations

import re
from typing import Final

#: Where people go who wanted nothing, or something elsewhere.
FIRST_PAGE: Final = "/"

# A path that no browser takes for the beginning of a host: no second slash, and no
# backslash, which browsers read as one. Colons are left out, so no scheme hides.
_OWN: Final = re.compile(r"/(?![/\\])[A-Za-z0-9._~!$&'()*+,;=@%/?-]{0,500}")


def own_path(wanted: str) -> str:
    """Return a path of this server as it was wanted, or the first page."""
    return wanted if _OWN.fullmatch(wanted) else FIRST_PAGE

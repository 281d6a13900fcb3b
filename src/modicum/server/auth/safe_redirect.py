"""Safe redirects: only to this server's own pages."""

from __future__ import annotations

import re
from typing import Final

#: The default target, also in place of an external one.
FIRST_PAGE: Final = "/"

# A path that no browser interprets as a host: no second slash, and no backslash, which
# browsers read as one. Colons are excluded, so no scheme is possible.
_OWN: Final = re.compile(r"/(?![/\\])[A-Za-z0-9._~!$&'()*+,;=@%/?-]{0,500}")


def own_path(wanted: str) -> str:
    """Return a path of this server as it was wanted, or the first page."""
    return wanted if _OWN.fullmatch(wanted) else FIRST_PAGE

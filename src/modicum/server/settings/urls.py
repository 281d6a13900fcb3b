"""Reading addresses in settings: origins, services, hosts and networks."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import fail, line
from modicum.server.settings.model import Network

_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::[0-9]{1,5})?"
)


def is_loopback(host: str) -> bool:
    """Return whether a host, as written in a URL, is certainly this machine."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def origin(node: Node, what: str) -> str:
    """Return an address without path, in the form that browsers send as `Origin`."""
    given = line(node, what)
    parts = _parts(given, node, what)
    if parts.path not in ("", "/") or parts.query:
        raise fail(
            Code.BAD_NAME,
            f"{what} has a path: `{given[:100]}`",
            node,
            help=f"write  {parts.scheme}://{parts.netloc}",
        )
    _refuse_plain(parts, node, what)
    return f"{parts.scheme}://{_short(parts)}"


def service_url(node: Node, what: str, *, plain: bool = False) -> str:
    """Return the address of a service, as it is written."""
    given = line(node, what)
    parts = _parts(given, node, what)
    if parts.query:
        raise fail(Code.BAD_NAME, f"{what} has a query: `{given[:100]}`", node)
    if not plain:
        _refuse_plain(parts, node, what)
    return given


def _parts(given: str, node: Node, what: str) -> SplitResult:
    try:
        parts = urlsplit(given)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_fits = SplitResult("", "", "", "", ""), False
    fits = parts.scheme in ("http", "https") and _HOST.fullmatch(parts.netloc)
    if not fits or not port_fits or "#" in given:
        raise fail(
            Code.BAD_NAME,
            f"{what} is not an address of a server",
            node,
            help=f"write {what.strip('`')}: https://NAME, without user and password",
        )
    return parts


def _refuse_plain(parts: SplitResult, node: Node, what: str) -> None:
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise fail(
            Code.BAD_NAME,
            f"{what} must be https: `{parts.scheme}://{parts.netloc}`",
            node,
            notes=("others on the network could intercept it",),
            help=f"write  https://{parts.netloc}",
        )


def _short(parts: SplitResult) -> str:
    """Return host and port in small letters, without the scheme's own port."""
    usual = {"http": 80, "https": 443}[parts.scheme]
    host = parts.netloc.lower()
    return host.removesuffix(f":{usual}") if parts.port == usual else host


def host_of(node: Node, what: str) -> str:
    """Return a host with or without port, in small letters."""
    given = line(node, what)
    if not _HOST.fullmatch(given):
        raise fail(
            Code.BAD_NAME,
            f"{what} is not a host: `{given[:100]}`",
            node,
            help="write a name or an address, with an optional port",
        )
    return given.lower()


def network(node: Node) -> Network:
    """Return a network, such as `10.0.0.0/8` or `fd00::1`."""
    given = line(node, "a trusted proxy")
    try:
        known = ip_network(given)
    except ValueError as error:
        raise fail(
            Code.BAD_NAME,
            f"a trusted proxy is an address or a network, not `{given[:100]}`",
            node,
            help="write  10.1.2.3  or  10.1.2.0/24, without bits beyond the mask",
        ) from error
    if known.prefixlen == 0:
        raise fail(
            Code.OUT_OF_RANGE,
            f"`{given}` contains all addresses: anybody could claim any address",
            node,
            help="list the addresses of your proxies only",
        )
    return known

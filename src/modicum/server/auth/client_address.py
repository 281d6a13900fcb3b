"""The client of a request and its path: what proxies report, if they are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, NamedTuple, TypeAlias

from modicum.server.settings.model import Network

Address: TypeAlias = IPv4Address | IPv6Address

#: The prefix length of the networks of clients with IPv6.
_NETWORK_BITS: Final = 64
#: All headers in which proxies describe a request; none of them is passed on.
FORWARDING = frozenset(
    {
        "forwarded",
        "via",
        "x-client-ip",
        "x-forwarded-by",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-scheme",
        "x-forwarded-server",
        "x-forwarded-ssl",
        "x-original-host",
        "x-original-url",
        "x-real-ip",
        "x-rewrite-url",
    }
)


class ClientPath(NamedTuple):
    """The path of a request.

    Attributes:
        client: The client address; None if unknown.
        is_safe: Whether it was unreadable in transit: https up to a trusted proxy,
            or only on this machine.
        is_https: Whether the client used https.
        text: The client address as text.
    """

    client: Address | None
    is_safe: bool
    is_https: bool
    text: str


def address_of(text: str | None) -> Address | None:
    """Return an address, IPv4 in either form as IPv4; None if the text is none."""
    try:
        address = ip_address((text or "").strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


#: Of the clients of requests, whose addresses are short and have one spelling.
_known_address = lru_cache(1024)(address_of)


def client_network(client: Sequence[Any] | None) -> str:
    """Return the address of a client as ASGI has it; of IPv6, its network.

    One client may use all addresses of a network.
    """
    return _network_of(client[0] if client else None)


@lru_cache(1024)
def _network_of(text: str | None) -> str:
    address = address_of(text)
    if address is None or address.version == 4:
        return "" if address is None else str(address)
    return str(IPv6Network((int(address), _NETWORK_BITS), strict=False))


def is_trusted(address: Address | None, trusted: Sequence[Network]) -> bool:
    """Return whether an address is one of the proxies that are believed."""
    return address is not None and any(
        address.version == network.version and address in network for network in trusted
    )


def client_path(
    peer: str | None,
    headers: Sequence[tuple[str, str]],
    trusted: Sequence[Network],
) -> ClientPath:
    """Return the path of a request, believing only trusted proxies."""
    client = _known_address(peer)
    if not is_trusted(client, trusted):
        # An untrusted peer with proxy headers is a proxy missing in the settings: its
        # requests may come from anywhere.
        speaks_for_others = any(name in FORWARDING for name, _ in headers)
        is_here = client is not None and client.is_loopback
        is_safe = is_here and not speaks_for_others
        return ClientPath(client, is_safe, is_https=False, text=str(client))
    protocols = {
        one.strip().lower()
        for name, value in headers
        if name == "x-forwarded-proto"
        for one in value.split(",")
    }
    is_https = protocols == {"https"}
    hops = [
        one
        for name, value in headers
        if name == "x-forwarded-for"
        for one in value.split(",")
    ]
    stranger = _first_stranger(hops, trusted)
    return ClientPath(stranger, is_https, is_https, str(stranger))


def _first_stranger(hops: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """Return the last address that is no trusted proxy; earlier ones are unverified."""
    for hop in reversed(hops):
        address = address_of(hop)
        if address is None or not is_trusted(address, trusted):
            return address
    return None

"""Where a server may listen, held against a plain list of what reaches others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL
from modicum.core.errors import UsageError
from modicum.server.settings.binding import bound_address
from modicum.server.settings.model import Listen, Oidc, Settings

LOCAL = Settings()
SEVERAL = Settings(local_people={"olga": {Role.AUDITOR: frozenset({ALL})}})
TOKENS = Settings(api_tokens=True)
SAFE = Settings(
    api_tokens=True,
    public_url="https://x.org",
    trusted_proxies=(ip_network("10.0.0.0/8"),),
)

#: What the system makes of ways to write an address, and names somebody controls.
KNOWN = {
    "localhost": ["127.0.0.1", "::1"],
    "ip6-localhost": ["::1"],
    "evil.example": ["203.0.113.7"],
    "half.example": ["127.0.0.1", "203.0.113.7"],
    "rebound.localhost": ["203.0.113.7"],
    "localhost.evil.example": ["203.0.113.7"],
    "0": ["0.0.0.0"],
    "0x0": ["0.0.0.0"],
    "127.1": ["127.0.0.1"],
    "2130706433": ["127.0.0.1"],
    "::ffff:0:0": ["::ffff:0.0.0.0"],
}
HERE = ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "127.1", "2130706433"]
HERE += ["::ffff:127.0.0.1", "ip6-localhost"]
ELSEWHERE = ["0.0.0.0", "::", "[::]", "0", "0x0", "10.0.0.1", "fe80::1", "evil.example"]
ELSEWHERE += ["half.example", "rebound.localhost", "localhost.evil.example"]
ELSEWHERE += ["::ffff:0.0.0.0", "::ffff:10.0.0.1", "::ffff:0:0", "169.254.169.254"]
NOWHERE = ["", " ", "127.0.0.1 ", "::1%lo", "127.0.0.1%eth0", "nobody.example"]


def resolve(host: str) -> Sequence[str]:
    if host in KNOWN:
        return KNOWN[host]
    if host == "nobody.example":
        raise OSError("no such name")
    return [host]


def at(settings: Settings, host: str) -> Settings:
    return replace(settings, listen=Listen(host))


@pytest.mark.parametrize("settings", [LOCAL, TOKENS, SAFE])
@pytest.mark.parametrize("host", HERE)
def test_everybody_may_listen_here(settings: Settings, host: str) -> None:
    bare = host.strip("[]")
    assert bound_address(at(settings, host), resolve) == resolve(bare)[0]


@pytest.mark.parametrize("host", ELSEWHERE)
def test_others_are_listened_to_only_if_they_can_be_told_and_nobody_listens_in(
    host: str,
) -> None:
    assert bound_address(at(SAFE, host), resolve)
    for unsafe, text in (
        (LOCAL, "without authentication"),
        (SEVERAL, "without authentication"),
        (replace(SAFE, api_tokens=False), "without authentication"),
        (replace(SAFE, public_url=None), "not https"),
        (replace(SAFE, public_url="http://127.0.0.1"), "not https"),
        (replace(SAFE, trusted_proxies=()), "no proxy"),
    ):
        with pytest.raises(UsageError) as caught:
            bound_address(at(unsafe, host), resolve)
        assert text in caught.value.render()
        assert "--host 127.0.0.1" in caught.value.render()


def test_a_provider_is_enough_to_tell_people() -> None:
    oidc = Oidc("https://x.org", "m", Path("s"))
    assert bound_address(at(replace(SAFE, api_tokens=False, oidc=oidc), "::"), resolve)


@pytest.mark.parametrize("settings", [LOCAL, TOKENS, SAFE])
@pytest.mark.parametrize("host", NOWHERE)
def test_what_is_no_host_is_refused(settings: Settings, host: str) -> None:
    with pytest.raises(UsageError):
        bound_address(at(settings, host), resolve)


def test_the_address_is_what_was_checked_and_not_the_name() -> None:
    hosts: list[str] = []

    def changing(host: str) -> Sequence[str]:
        hosts.append(host)
        return ["127.0.0.1"] if len(hosts) == 1 else ["203.0.113.7"]

    assert bound_address(at(LOCAL, "rebound.example"), changing) == "127.0.0.1"
    assert hosts == ["rebound.example"]


def test_a_link_is_known_to_one_process_only() -> None:
    with pytest.raises(UsageError, match="one process"):
        bound_address(replace(LOCAL, workers=2), resolve)
    assert bound_address(replace(TOKENS, workers=2), resolve)


def test_the_system_knows_the_names_of_this_machine() -> None:
    assert bound_address(at(LOCAL, "localhost")) in ("127.0.0.1", "::1")
    with pytest.raises(UsageError):
        bound_address(at(LOCAL, "0"))

"""A real OpenID provider, which runs as a process of its own while tests last."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import httpx2

ROOT = Path(__file__).parents[2]
#: Where `make suites` installs it, with the Node.js that runs it.
FOLDER = ROOT / "build" / "oidc-provider"
_SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
_READY_SECONDS = 60.0


@dataclass(frozen=True)
class OidcProvider:
    """A provider that runs.

    Attributes:
        issuer: Its issuer.
    """

    issuer: str

    def sign_in(self, url: str, account: str) -> str:
        """Return where a person's browser is sent back to.

        Args:
            url: Where the server sent it.
            account: Who signs in, with any password.
        """
        with httpx2.Client(trust_env=False, follow_redirects=False) as person:
            answer = person.get(url)
            for _ in range(12):
                if answer.is_redirect:
                    target = urljoin(str(answer.url), answer.headers["location"])
                    if not target.startswith(self.issuer):
                        return target
                    answer = person.get(target)
                    continue
                answer = self._filled_in(person, answer, account)
            raise AssertionError(f"the provider goes round in circles: {answer.text}")

    @staticmethod
    def _filled_in(
        person: httpx2.Client, answer: httpx2.Response, account: str
    ) -> httpx2.Response:
        action = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
        prompt = re.search(r'name="prompt" value="([a-z]+)"', answer.text)
        assert action is not None, answer.text
        assert prompt is not None, answer.text
        form = {"prompt": prompt[1], "login": account, "password": "any"}
        return person.post(urljoin(str(answer.url), action[1]), data=form)

    def program_token(self, client: str, secret: str, audience: str) -> str:
        """Return the access token of a program, for an audience."""
        form = {"grant_type": "client_credentials", "resource": audience}
        with httpx2.Client(trust_env=False) as program:
            answer = program.post(
                f"{self.issuer}/token", data=form, auth=(client, secret)
            )
        return str(answer.raise_for_status().json()["access_token"])


def is_installed() -> bool:
    """Return whether this machine has it."""
    return (FOLDER / ".built").exists()


@contextmanager
def running_provider(redirect_uri: str) -> Iterator[OidcProvider]:
    """Yield a provider that sends people back to an address."""
    port = _free_port()
    process = subprocess.Popen(
        [str(FOLDER / "node"), str(_SCRIPT), str(FOLDER), str(port), redirect_uri],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        issuer = f"http://127.0.0.1:{port}"
        _wait(issuer, process)
        yield OidcProvider(issuer)
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(issuer: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _READY_SECONDS
    with httpx2.Client(trust_env=False) as client:
        while time.monotonic() < until:
            assert process.poll() is None, "the provider ended"
            try:
                if client.get(f"{issuer}/jwks").is_success:
                    return
            except httpx2.HTTPError:
                time.sleep(0.1)
    raise AssertionError("the provider did not begin in time")

"""`modicum serve`: one ledger for many people and programs, over HTTP."""

from __future__ import annotations

from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from modicum.cli.ledger_access import refuse_no_ledger
from modicum.cli.output import note, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modicum.server.factory import Opened
    from modicum.server.settings.model import Settings
    from modicum.server.settings_check import Checked

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="MODICUM_CONFIG",
        help="The settings file; options override it.",
        metavar="FILE",
    ),
]
KnownHead = Annotated[
    str | None,
    typer.Option(
        "--known-head",
        help="An entry that the ledger must contain: its number and its hash, or at"
        " least its first 12 digits. A ledger without it is not served.",
        metavar="SEQ:HASH",
    ),
]
AuditTo = Annotated[
    list[str] | None,
    typer.Option(
        "--audit-to",
        help="Ship the access trail there: a file, syslog://HOST:PORT,"
        " syslog+tcp://HOST:PORT, syslog:///dev/log, or"
        " otlp+https://HOST:PORT/v1/logs; repeatable.",
        metavar="TARGET",
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Check the settings, and do not serve.")
]


def serve(
    config: Config = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            envvar="MODICUM_LEDGER",
            help="The ledger: a file, or a URL such as postgresql://host/database.",
            metavar="FILE|URL",
        ),
    ] = None,
    known_head: KnownHead = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="The port; 0 for any free port."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=64, help="The number of server processes."
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option("--public-url", help="The public URL: https://NAME."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option("--log-level", help="The minimum log level."),
    ] = None,
    audit_to: AuditTo = None,
    check: Check = False,
    in_browser: Annotated[
        bool,
        typer.Option("--open", help="Open the first sign-in link in a browser."),
    ] = False,
) -> None:
    """Serve a ledger over HTTP until stopped.

    Without settings, it serves one person on this machine, who signs in with a one-time
    link; `local_people` in the settings are several. To serve other machines, configure
    sign-in. With --check, it reads settings, ledger, policy, keys, secrets and vault,
    and prints the configuration.
    """
    from modicum.ops.wiring import current_actor

    with reporting(as_json=False):
        from modicum.server.settings.binding import overridden

        settings = overridden(
            _settings(config),
            ledger=ledger,
            known=known_head,
            public_url=public_url,
            log_level=log_level,
            audit_to=audit_to or (),
            host=host,
            port=port,
            workers=workers,
        )
        for one in (settings, *settings.completed.values()):
            refuse_no_ledger(one.ledger)
        if check:
            _check(settings, current_actor())
            return
        open_ledger(settings, in_browser=in_browser)


def open_ledger(settings: Settings, *, in_browser: bool) -> None:
    """Serve until stopped, and print the addresses."""
    from modicum.ops.wiring import current_actor
    from modicum.server.factory import open_server
    from modicum.system.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    with TemporaryDirectory(prefix="modicum-") as folder:

        def announce(opened: Opened) -> None:
            _print_address(opened)
            if in_browser and opened.links:
                _show(next(iter(opened.links.values())), Path(folder))

        open_server(settings, current_actor(), announce)


def _show(link: str, private: Path) -> None:
    """Open a link in a browser, if there is one.

    Others on this machine see the arguments of programs: the browser gets a file that
    only this user can read.
    """
    import webbrowser

    page = private / "sign-in.html"
    page.write_text(f'<meta http-equiv="refresh" content="0; url={escape(link)}">')
    # Some browsers return only when they are closed.
    Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()


def _settings(config: Path | None) -> Settings:
    from modicum.server.settings.model import Settings
    from modicum.server.settings.reader import load_settings

    return Settings() if config is None else load_settings(config)


def _print_address(opened: Opened) -> None:
    """Print where the server listens, and the sign-in link of each person."""
    note(f"listening on {printable(opened.url)}")
    for name, link in opened.links.items():
        whose = f" of {printable(name)}" if len(opened.links) > 1 else ""
        note(f"one-time sign-in link{whose}:  {link}")


def _check(settings: Settings, user: str) -> None:
    """Check the settings of all ledgers, and print what a server would do."""
    from modicum.server.settings_check import checked

    _print_checked(checked(settings, user), settings)
    for name, own in settings.completed.items():
        print(f"\nledger {name}")
        _print_checked(checked(own, user), own)
    note("the settings are valid; nothing was served, and no provider was contacted")


def _print_checked(found: Checked, settings: Settings) -> None:
    """Print what a server would do."""
    entries = "1 entry" if found.entries == 1 else f"{found.entries} entries"
    processes = f"{settings.workers} process" + "es" * (settings.workers > 1)
    where = found.door.origin if found.door.port else f"{found.door.address}, any port"
    for what, text in (
        ("ledger", f"{found.ledger}, {entries}"),
        ("policy", f"{found.policy} ({found.digest[:12]})"),
        ("listens on", f"{where}, {processes}"),
        ("public URL", settings.public_url or "none"),
        ("access", "; ".join(_let_in(settings, found.door.user))),
        ("signs with", found.key or "nothing: no `signing_key_file`"),
        ("analyzes", ", ".join(sorted(settings.tables)) or "nothing: no `tables`"),
        ("escrow", _escrow(found.data_sets, settings)),
        ("ships to", ", ".join(_shipped(settings)) or "nothing: no `audit_to`"),
    ):
        print(printable(f"{what:<12}{text}"))


def _escrow(data_sets: int | None, settings: Settings) -> str:
    """Return the state of an escrow."""
    place = settings.escrow
    if place is None or data_sets is None:
        return "none: no `escrow`"
    sets = "1 data set" if data_sets == 1 else f"{data_sets} data sets"
    return f"{sets}; vault {place.vault}, keys {place.keys}"


def _shipped(settings: Settings) -> Iterator[str]:
    """Yield where the access trail is shipped to."""
    for one in settings.audit_to:
        yield one.name


def _let_in(settings: Settings, user: str) -> Iterator[str]:
    """Yield who could sign in, and how."""
    if settings.is_local:
        who = ", ".join(settings.local_people) or user
        yield f"{who} by a one-time link, from this machine"
    if settings.oidc is not None:
        yield f"people who sign in at {settings.oidc.issuer}"
        if settings.oidc.programs is not None:
            yield "programs with its tokens"
    if settings.api_tokens or settings.is_local:
        yield "holders of API tokens"

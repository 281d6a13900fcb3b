"""`modicum release fit` and `modicum release options`: allowed variants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.ledger_signatures import file_named
from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, Policy, point
from modicum.cli.output import print_json, print_table, reporting
from modicum.cli.release_files import File, read_release
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Decision
    from modicum.api.local.explanation.remedies import Fit, Option, Options


def fit(
    file: File,
    vary: Annotated[
        str,
        typer.Option(
            "--vary",
            help="What may vary: noise (sigma or scale alone), epsilon, rho or mu"
            " of declared costs, sampling_rate, where, or periods.",
            metavar="WHAT",
        ),
    ] = "noise",
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            help="The only mechanism that may change; by default, all.",
            metavar="NAME",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The output file for the release.",
            metavar="FILE",
            callback=file_named,
        ),
    ] = None,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print the closest allowed release: least noise, or most of the data.

    Prints a release file, with comments. The ledger does not change. Exits 0, or 3 if
    no such release exists. A release that already exists needs no change, and exits 0.
    """
    from modicum.system.files import write_new

    with reporting(as_json=as_json):
        decision = _checked(file, policy, ledger, as_of, quiet=as_json)
        found = decision.largest_fit(vary, mechanism)
        if out is not None and found.found:
            write_new(out, found.text)
        if as_json:
            print_json(found.to_dict())
        elif decision.retry:
            print(*found.why, sep="\n")
        elif out is not None and found.found:
            print(*map(printable, found.explain().splitlines()), sep="\n")
            print(printable(f"written to {out}"))
        else:
            _print_fit(found)
        if not found.found and not decision.retry:
            raise typer.Exit(Exit.DENIED)


def options(
    file: File,
    take: Annotated[
        int | None,
        typer.Option(
            "--take", min=1, help="Print the release of this option.", metavar="NUMBER"
        ),
    ] = None,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List tested changes of a denied release after which it would be allowed.

    Writes nothing; exits 0, or 3 if it is denied and no single change helps. For a
    release with many mechanisms, the search may end early, with a note.
    """
    from modicum.api.local.views.releases import options_view

    with reporting(as_json=as_json):
        decision = _checked(file, policy, ledger, as_of, quiet=as_json)
        found = decision.options()
        if as_json:
            print_json(options_view(decision, found))
        elif take is not None and (found or decision.allowed):
            print(_taken(found, take).text, end="")
        else:
            _print_options(decision, found)
        if not found and not decision.allowed:
            raise typer.Exit(Exit.DENIED)


def _checked(
    file: Path, policy: Path | None, ledger: str, as_of: str | None, *, quiet: bool
) -> Decision:
    from modicum.cli.ledger_access import note_if_empty, open_view

    view = open_view(ledger, policy=policy, as_of=point(as_of))
    if not quiet:
        note_if_empty(view, ledger)
    return view.check(read_release(file))


def _print_fit(found: Fit) -> None:
    if not found.found:
        print(found.explain())
        return
    for line in found.explain().splitlines():
        print(f"# {line}")
    print(found.text, end="")


def _print_options(decision: Decision, found: Options) -> None:
    from modicum.api.local.explanation.denial_text import unmatched_text
    from modicum.api.local.explanation.remedies import ENDED_EARLY

    print(decision.headline)
    if found:
        _print_table(found)
    elif not (decision.allowed or found.ended_early):
        print("no known single change makes it fit")
        if decision.verdict.unmatched:
            print(unmatched_text(decision.verdict.unmatched))
    if found.ended_early:
        print(f"note: {ENDED_EARLY}")


def _print_table(found: Options) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("CHANGE", no_wrap=True)
    table.add_column("EFFECT")
    for number, one in enumerate(found, 1):
        condition = (f"only if {one.only_if}",) if one.only_if else ()
        lines = "\n".join((*condition, *one.why))
        table.add_row(str(number), escape(one.title), escape(lines))
    print_table(table)


def _taken(found: Options, number: int) -> Option:
    if number > len(found):
        raise typer.BadParameter(f"there are {len(found)} options", param_hint="--take")
    return found[number - 1]

"""`modicum demo`: the main job, end to end, on an example organization."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.output import console, reporting
from modicum.cli.policy import print_counts
from modicum.cli.status import SHOWN, print_status

if TYPE_CHECKING:
    from modicum.ops.demo import Demo


def demo(
    name: Annotated[
        str, typer.Argument(help="The example.", metavar="[NAME]")
    ] = "acme-health",
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="The folder for its files; by default ./NAME."),
    ] = None,
    in_browser: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Serve it to six people on this machine, and open the sign-in link of"
            " the first one in a browser. A folder that was made so is served again.",
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="With --open: the port; 0 for a free one."
        ),
    ] = None,
) -> None:
    """Create an example organization and show the main workflow."""
    from modicum.ops.demo import make_demo
    from modicum.ops.demo_people import SETTINGS, add_people

    with reporting(as_json=False):
        place = folder if folder is not None else Path(name)
        if not (in_browser and (place / SETTINGS).exists()):
            with console(stderr=True).status("recording the past"):
                made = make_demo(name, place)
            _show(made)
            if in_browser:
                add_people(place)
        if in_browser:
            from modicum.cli.serve import open_ledger
            from modicum.server.settings.binding import overridden
            from modicum.server.settings.reader import load_settings

            settings = overridden(load_settings(place / SETTINGS), port=port)
            open_ledger(settings, in_browser=True)


def _show(made: Demo) -> None:
    folder = made.folder
    print(f"Made {folder}: policy.yaml, past-releases.yaml, releases/, ledger.db\n")
    print("The policy compiles to rules:")
    print_counts(made.workspace.policy())
    over = [decision for decision in made.past if decision.over_limit]
    print(f"\nThe past: {len(made.past)} releases recorded, not decided.")
    for decision in over[:3]:
        rules = ", ".join(decision.over_limit)
        print(f"  {decision.release} puts {rules} over the limit")
        break
    print("\nToday's releases:")
    for path, decision in made.decisions:
        answer = "ALLOW" if decision.allowed else "DENY "
        why = "" if decision.allowed else "  by " + ", ".join(decision.causes)
        print(f"  {answer} {decision.release:<22} ({path.name}){why}")
    print("\nThe rules now:")
    sys.stdout.flush()
    print_status(made.workspace, shown=SHOWN)
    denied = next(one for _, one in made.decisions if not one.allowed)
    print("\nOne denial, explained:")
    print(denied.explain())
    _show_next(folder)


def _show_next(folder: Path) -> None:
    print(
        f"""
Next steps, in {folder}:
  modicum status --all                                 every rule's balance
  modicum release check releases/04-cohort-diagnosis.yaml
                                                       then with sigma: 8 in the file
  modicum release show r-0007                          what was overspent
  modicum policy compile policy.yaml                   every rule and its source line
  modicum ledger verify                                the chain and every decision"""
    )

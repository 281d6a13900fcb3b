"""`modicum query lint`: query files and tables files, checked without a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger, Policy
from modicum.cli.output import note, print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.policy import CompiledPolicy

Files = Annotated[
    list[Path],
    typer.Argument(help="Query files and tables files.", metavar="FILE..."),
]


class _Checked(NamedTuple):
    """A file without mistakes: what it is, how much is in it, and remarks."""

    file: Path
    kind: str
    number: int
    remarks: tuple[str, ...] = ()


def add_to(app: typer.Typer) -> None:
    """Add the command to those about queries."""
    app.command("lint")(lint)


def lint(
    files: Files,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave with 4 if there are remarks.")
    ] = False,
) -> None:
    """Check query files and tables files; report every mistake with its place.

    They are read under the policy that is given, or that of the ledger. Guesses of
    `query init` that nobody reviewed are remarks. Reads no table.
    """
    from modicum.core.reader import Problems

    with reporting(as_json=as_json):
        compiled = _compiled(policy, ledger)
        found = Problems()
        checked: list[_Checked] = []
        for file in files:
            with found.guard():
                checked.append(_checked(file, compiled))
        if as_json:
            found.raise_any()
            print_json(_to_dict(checked, strict=strict))
        else:
            for one in checked:
                _print(one)
            found.raise_any()
        if strict and any(one.remarks for one in checked):
            raise typer.Exit(Exit.INVALID)


def _compiled(policy: Path | None, ledger: str) -> CompiledPolicy:
    if policy is not None:
        from modicum.ops.files.documents import load_policy

        return load_policy(policy)
    from modicum.cli.ledger_access import open_view

    return open_view(ledger).policy()


def _checked(file: Path, compiled: CompiledPolicy) -> _Checked:
    from modicum.ops.files.queries import is_tables_file, load_query, load_tables
    from modicum.query.hints import remarks

    vocabulary = compiled.policy.vocabulary
    if is_tables_file(file):
        tables = len(load_tables(file, vocabulary).by_name)
        return _Checked(file, "tables", tables, tuple(_guesses(file)))
    query = load_query(file, compiled)
    mechanisms = len(query.lowered.mechanisms())
    return _Checked(file, "query", mechanisms, remarks(query, vocabulary))


def _guesses(file: Path) -> Iterator[str]:
    """Yield the lines of a draft that nobody has reviewed."""
    from modicum.query.tables_draft import GUESS

    for number, one in enumerate(file.read_text("utf-8-sig").split("\n"), 1):
        if GUESS in one:
            yield f"line {number} is marked `guess`: {one.partition(GUESS)[2]}"


def _print(one: _Checked) -> None:
    what = {"tables": "table", "query": "mechanism"}[one.kind]
    told = f"{one.number} {what}{'' if one.number == 1 else 's'}"
    file = printable(str(one.file))
    for remark in one.remarks:
        note(printable(f"{file}: {remark}"))
    is_draft = one.kind == "tables" and one.remarks
    print(f"{file}: {'a draft' if is_draft else 'ok'} ({told})")


def _to_dict(checked: Iterable[_Checked], *, strict: bool) -> dict[str, object]:
    """Return the documented JSON form (docs/reference/json.md)."""
    files = [
        {
            "file": str(one.file),
            "ok": not (strict and one.remarks),
            "kind": one.kind,
            "number": one.number,
            "remarks": list(one.remarks),
        }
        for one in checked
    ]
    return {"ok": all(one["ok"] for one in files), "files": files}

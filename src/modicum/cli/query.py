"""`modicum query`: private SQL, planned and run under a reservation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from modicum.cli.exit_codes import Exit, exit_for
from modicum.cli.options import DEFAULT_LEDGER, Actor, EveryRule, Json, Ledger, Policy
from modicum.cli.output import note, print_decision, print_json, reporting
from modicum.core.errors import ModicumError, printable
from modicum.engines.factory import ENGINE_NAMES

if TYPE_CHECKING:
    from modicum.api.local.ledger_view import LedgerView
    from modicum.api.local.queries.actions import Queries, Ran
    from modicum.policy import CompiledPolicy
    from modicum.query.query_file import QueryFile
    from modicum.query.tables_draft import TableDraft

Files = Annotated[
    list[Path],
    typer.Argument(help="Query files and tables files.", metavar="FILE..."),
]


class _Checked(NamedTuple):
    """A valid file: its kind, its size, and remarks."""

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
        bool, typer.Option("--strict", help="Exit with code 4 if there are remarks.")
    ] = False,
) -> None:
    """Check query files and tables files; report every error with its position.

    They are read under the given policy, or that of the ledger. Unreviewed guesses of
    `query init` are reported as remarks. Reads no table.
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
    mechanisms = len(query.compiled.mechanisms())
    return _Checked(file, "query", mechanisms, remarks(query, vocabulary))


def _guesses(file: Path) -> Iterator[str]:
    """Yield the lines of an unreviewed draft."""
    from modicum.query.tables_draft import GUESS

    for number, one in enumerate(file.read_text("utf-8-sig").split("\n"), 1):
        if GUESS in one:
            yield f"line {number} is marked `guess`: {one.partition(GUESS)[2]}"


def _print(one: _Checked) -> None:
    what = {"tables": "table", "query": "mechanism"}[one.kind]
    count = f"{one.number} {what}{'' if one.number == 1 else 's'}"
    file = printable(str(one.file))
    for remark in one.remarks:
        note(printable(f"{file}: {remark}"))
    is_draft = one.kind == "tables" and one.remarks
    print(f"{file}: {'a draft' if is_draft else 'ok'} ({count})")


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


app = typer.Typer(
    help="Price and run private SQL queries.",
    no_args_is_help=True,
)

QueryPath = Annotated[
    Path, typer.Argument(help="The query file.", metavar="QUERY", show_default=False)
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        help="The source of a table: a Parquet or CSV file, a folder or pattern of"
        " Parquet files, or FILE.duckdb::TABLE; with Spark also"
        " table:CATALOG.SCHEMA.TABLE or a URL of Parquet files; repeatable. PLACE"
        " alone, if the query reads one table.",
        metavar="TABLE=PLACE",
    ),
]

Day = Annotated[
    str | None,
    typer.Option(
        "--day",
        help="Answer this day of the query; the first one spends the loss of all.",
        metavar="DAY",
    ),
]
Contributions = Annotated[
    Path | None,
    typer.Option(
        "--contributions",
        help="With --day: the folder that remembers how many rows of whom were kept."
        " It holds ids of the data.",
        metavar="FOLDER",
    ),
]


@app.command()
def init(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Data: a CSV or Parquet file, a folder or pattern of Parquet files, or"
            " FILE.duckdb::TABLE; TABLE=FILE names the table.",
            metavar="FILE...",
            show_default=False,
        ),
    ],
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The output file; - for stdout.")
    ] = Path("tables.yaml"),
    as_json: Json = False,
) -> None:
    """Draft the tables file for data, with guessed types and ids, each marked.

    Run it next to the data, and review the draft. Types of a CSV file are guessed from
    its first 10,000 rows; no value of a row is written. Never overwrites a file.
    """
    from modicum.cli.ledger_access import open_view
    from modicum.ops.files.columns import drafted_from
    from modicum.query.tables_draft import draft_text
    from modicum.system.files import write_new

    with reporting(as_json=as_json):
        vocabulary = open_view(ledger, policy=policy).policy().policy.vocabulary
        drafts: list[TableDraft] = []
        for given in files:
            name, equals, place = given.partition("=")
            draft = drafted_from(
                place if equals else given, name if equals else None, vocabulary
            )
            if any(one.table.casefold() == draft.table.casefold() for one in drafts):
                twice = f"two tables would be named `{draft.table}`"
                raise typer.BadParameter(f"{twice}: write NAME=FILE", param_hint="FILE")
            drafts.append(draft)
        text = draft_text(drafts, vocabulary)
        if str(out) != "-":
            write_new(out, text)
        if as_json:
            print_json({"file": str(out), "tables": [one.to_dict() for one in drafts]})
        elif str(out) == "-":
            print(text, end="")
        else:
            for one in drafts:
                dropped = f", {len(one.left_out)} left out" if one.left_out else ""
                print(f"{one.table}: {len(one.columns)} columns{dropped}")
            print(f"{out}: review each line marked `guess`; add bounds and values")
            print(f"next:  modicum query lint {out}")


@app.command()
def plan(
    query: QueryPath,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    show_all: EveryRule = False,
    as_json: Json = False,
) -> None:
    """Show the loss of a query per privacy unit, and whether it would be allowed.

    Reads no table and writes nothing. Exits 0 or 3, as `release check`.
    """
    from modicum.api.local.queries.actions import plan_of
    from modicum.api.local.views.queries import plan_view
    from modicum.api.schema.shape import plain
    from modicum.cli.ledger_access import open_view
    from modicum.cli.query_text import print_plan

    with reporting(as_json=as_json):
        view = open_view(ledger, policy=policy)
        found = _loaded(query, view)
        decision = plan_of(view, found)
        if as_json:
            print_json(plain(plan_view(found, decision.view(decision.explanation()))))
        else:
            print_plan(found, decision, whole=show_all)
        if not decision.allowed:
            raise typer.Exit(Exit.DENIED)


@app.command()
def schema(
    policy: Annotated[
        Path | None,
        typer.Argument(
            help="A policy, whose names are then offered.", metavar="[POLICY]"
        ),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="The schema of tables files.")
    ] = False,
) -> None:
    """Print the JSON Schema of query files, for completion in editors."""
    from modicum.api.local.queries.json_schema import query_schema, tables_schema
    from modicum.ops.files.documents import load_policy

    with reporting(as_json=False):
        vocabulary = None if policy is None else load_policy(policy).policy.vocabulary
        print_json(tables_schema(vocabulary) if tables else query_schema(vocabulary))


@app.command("compile")
@app.command("lower", hidden=True)  # The former name.
def compile_query(
    query: QueryPath,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
) -> None:
    """Print the release that a query compiles to, as JSON for `release check`."""
    from modicum.cli.ledger_access import open_view
    from modicum.cli.query_text import release_text

    with reporting(as_json=False):
        found = _loaded(query, open_view(ledger, policy=policy))
        print(release_text(found.described))


@app.command()
def run(
    query: QueryPath,
    data: Data = None,
    engine: Annotated[
        str, typer.Option("--engine", help=f"The engine: {ENGINE_NAMES}.")
    ] = "duckdb",
    spark_master: Annotated[
        str,
        typer.Option(
            "--spark-master", help="The Spark master URL, or sc://… of Spark Connect."
        ),
    ] = "local[*]",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file for the answer: .csv, .json."),
    ] = None,
    day: Day = None,
    contributions: Contributions = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    show_all: EveryRule = False,
    as_json: Json = False,
) -> None:
    """Reserve the loss of a query, start it, run it with noise, and publish the answer.

    All checks run before anything is spent; from the start, the loss is spent, whatever
    happens. A query runs once: keep its answer. Exits 0 or 3.
    With --day and --contributions, it is answered day by day.
    """
    from modicum.cli.ledger_access import open_workspace
    from modicum.cli.query_text import AnswerOutput
    from modicum.ops.files.answers import writing_to

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, actor=actor)
        found = _loaded(query, workspace)
        sources = _sources(data or (), found.request.query.sources)
        asked = _asked(workspace.queries, found, day, contributions)
        with writing_to(out) as write:
            output = AnswerOutput(found.heading.id, out, write, as_json=as_json)
            try:
                ran = asked(
                    sources,
                    engine=engine,
                    spark_master=spark_master,
                    on_start=lambda one: note(
                        f"{one.release}: started; its loss is spent"
                    ),
                    complete=output.complete,
                )
            except ModicumError as error:
                if output.saved(error):
                    raise typer.Exit(exit_for(error)) from error
                raise
        if ran.answers is None:
            print_decision(ran.decision, as_json=as_json, whole=show_all)
        output.print_published()


add_to(app)


def _loaded(query: Path, view: LedgerView) -> QueryFile:
    from modicum.ops.files.queries import load_query

    return load_query(query, view.policy())


def _asked(
    queries: Queries, query: QueryFile, day: str | None, folder: Path | None
) -> Callable[..., Ran]:
    """Return what runs a query, or one day of it."""
    if day is not None and folder is not None:
        return partial(queries.by_days(query, folder).run, day)
    if day is None and folder is None:
        return partial(queries.run, query)
    both = "--day and --contributions"
    raise typer.BadParameter("give both, or neither", param_hint=both)


def _sources(given: Iterable[str], tables: Sequence[str]) -> dict[str, str]:
    """Return the locations of a query's tables, exactly one each."""
    found: dict[str, str] = {}
    for one in given:
        table, place = _placed(one, tables)
        if table in found:
            raise _not_data(f"`{table}` is given twice")
        if table not in tables:
            read = ", ".join(f"`{one}`" for one in tables)
            raise _not_data(
                f"the query does not read the table `{table}`; it reads {read}"
            )
        found[table] = place
    for table in tables:
        if table not in found:
            raise _not_data(f"give the source of `{table}`: --data {table}=PLACE")
    return found


def _placed(given: str, tables: Sequence[str]) -> tuple[str, str]:
    """Return which table is where; a place alone is that of the only table."""
    from modicum.engines.places import is_url, shown

    table, equals, place = given.partition("=")
    alone = is_url(given) or not equals  # A URL may contain the sign.
    if alone and given and len(tables) == 1:
        return tables[0], given
    if alone and given:
        each = " ".join(f"--data {one}=PLACE" for one in tables)
        raise _not_data(f"give the table of {shown(given)}: {each}")
    if not (table and place):
        instead = f"write TABLE=PLACE, such as {tables[0]}=FILE"
        raise _not_data(f"{instead}, not {shown(given)}")
    return table, place


def _not_data(reason: str) -> typer.BadParameter:
    return typer.BadParameter(reason, param_hint="--data")

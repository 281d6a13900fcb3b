"""Tumult itself under a reservation, in its own environment.

MODICUM_TUMULT names the Python of that environment; without it these tests are
skipped. With `required` it is `build/engines/tumult/bin/python`, as `make engines`
builds it, and its absence is a failure.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples.scripts import PERSON, SEAT, declared, generous

from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.core.errors import UnavailableError
from modicum.integrations.loader import Adapters

_NAMED = os.environ.get("MODICUM_TUMULT", "")
_BUILT = Path(__file__).parents[3] / "build" / "engines" / "tumult" / "bin" / "python"
PYTHON = str(_BUILT) if _NAMED == "required" else _NAMED

pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="MODICUM_TUMULT names no Python"),
]

#: Small tables need no 200 parts.
SETTINGS = {"spark.sql.shuffle.partitions": "1"}
HEAD = "from tmlt.analytics import *\ndef answer(session):\n"


class Scene:
    """A reservation, and a folder with tables and a script."""

    def __init__(self, folder: Path, cost: Any, unit: str = PERSON) -> None:
        self.folder = folder
        self.ws: Workspace = generous(folder, unit)
        assert self.ws.submit(declared(cost)).allowed
        self.use = Use(self.ws, "r-1", Adapters())
        self.tumult = self.use.tumult("visits", python=PYTHON, settings=SETTINGS)

    @property
    def status(self) -> str:
        return self.ws.standing("r-1").status.value

    def file(self, name: str, columns: dict[str, list[Any]]) -> Path:
        path, table = self.folder / name, pa.table(columns)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        elif path.suffix == ".arrow":
            with pa.ipc.new_file(str(path), table.schema) as sink:
                sink.write_table(table)
        else:
            rows = [list(columns), *zip(*columns.values(), strict=True)]
            path.write_text("\n".join(",".join(map(str, row)) for row in rows))
        return path

    def prepare(self, script: str, **sources: Any) -> Any:
        path = self.folder / "script.py"
        path.write_text(HEAD + script)
        return self.tumult.prepare(path, sources)

    def loss(self) -> Any:
        return self.use.mechanism("visits").loss("user")


def rows(answers: Any, name: str, *columns: str) -> dict[Any, int]:
    table = answers.tables[name].to_pylist()
    return {tuple(row[one] for one in columns): row["count"] for row in table}


def test_a_session_counts_ids_within_what_is_reserved(tmp_path: Path) -> None:
    """So much is reserved that the noise, of scale 1/2500, is nothing."""
    scene = Scene(tmp_path, {"eps": Fraction(10001, 2)})
    visits = scene.file(
        "visits.parquet",
        {"user_id": ["a", "a", "b", None, None], "g": ["x", "x", "y", "y", "y"]},
    )
    names = scene.file("names.csv", {"g": ["x", "y"], "name": ["east", "west"]})
    script = scene.prepare(
        "    print('told')\n"
        "    query = (QueryBuilder('visits').join_public('names')\n"
        "        .enforce(MaxRowsPerID(2))\n"
        "        .groupby(KeySet.from_dict({'name': ['east', 'west']})).count())\n"
        "    found = session.evaluate(query, PureDPBudget(5000))\n"
        "    return {'places': found, 'again': found.toPandas()}\n",
        visits=scene.tumult.rows_with_id(visits),
        names=scene.tumult.public(names, columns={"g": "text", "name": "text"}),
    )
    assert scene.status == "reserved"
    with scene.use:
        answers = script.run()
    assert scene.status == "published"
    # Rows of nobody are no rows.
    expected = {("east",): 2, ("west",): 1}
    assert rows(answers, "places", "name") == expected
    assert rows(answers, "again", "name") == expected
    assert answers.granted == {"eps": Fraction(10001, 2)}
    assert answers.remaining == {"eps": Fraction(1, 2)}
    spent = answers.granted["eps"] - answers.remaining["eps"]
    assert spent <= scene.loss().eps


def test_a_session_of_rows_has_a_quarter_of_rho_where_rows_are_exchanged(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, {"rho": Fraction(40003, 10)}, SEAT)
    stays = scene.file("stays.arrow", {"n": [1, 2, 3, 4], "month": [1, 1, 2, 2]})
    more = scene.file("more.csv", {"n": [7, 8], "day": ["2026-01-01", "none"]})
    script = scene.prepare(
        "    count = QueryBuilder('more').count()\n"
        "    more = session.evaluate(count, RhoZCDPBudget(500))\n"
        "    months = KeySet.from_dict({'month': [1, 2]})\n"
        "    count = QueryBuilder('stays').groupby(months).count()\n"
        "    stays = session.evaluate(count, RhoZCDPBudget(500))\n"
        "    return {'more': more, 'months': stays}\n",
        stays=scene.tumult.max_rows_in_max_groups(stays, 1, 1, column="month"),
        more=scene.tumult.max_rows(more, 2, columns={"n": "integer", "day": "date"}),
    )
    with scene.use:
        answers = script.run()
    # Neither a wrong date nor anything else in a row takes another row away.
    assert rows(answers, "more") == {(): 2}
    assert rows(answers, "months", "month") == {(1,): 2, (2,): 2}
    assert answers.granted == {"rho": Fraction(40003, 40)}
    assert answers.remaining == {"rho": Fraction(3, 40)}
    assert 4 * answers.granted["rho"] <= scene.loss().rho


def test_a_script_that_asks_for_more_than_is_reserved_fails_and_is_spent(
    tmp_path: Path,
) -> None:
    eps, delta = Fraction(1, 3), Fraction(1, 10**7)
    scene = Scene(tmp_path, {"eps": eps, "delta": delta})
    visits = scene.file("visits.parquet", {"user_id": ["row-4711"]})
    script = scene.prepare(
        "    query = QueryBuilder('visits').enforce(MaxRowsPerID(1)).count()\n"
        "    session.evaluate(query, ApproxDPBudget(0.333334, 1e-7))\n"
        "    return {}\n",
        visits=scene.tumult.rows_with_id(visits),
    )
    with pytest.raises(UnavailableError) as caught, scene.use:
        script.run()
    said = "Tumult failed in the script (RuntimeError)"
    assert caught.value.problems[0].message == said
    assert scene.status == "started"


def test_a_tumult_that_is_killed_midway_is_spent(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"eps": 1, "delta": Fraction(1, 10**7)})
    visits = scene.file("visits.parquet", {"user_id": [1, 2]})
    script = scene.prepare(
        "    import os\n    os.kill(os.getpid(), 9)\n",
        visits=scene.tumult.rows_with_id(visits),
    )
    with pytest.raises(UnavailableError, match="ended without a response"), scene.use:
        script.run()
    assert scene.status == "started"
    assert not script._worker.scratch.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def answer(session:\n", r"in the script \(SyntaxError\)"),
        ("def other(session): return {}\n", r"in the script \(NameError\)"),
    ],
)
def test_a_script_that_is_none_costs_nothing(
    tmp_path: Path, text: str, said: str
) -> None:
    scene = Scene(tmp_path, {"eps": 1})
    visits = scene.file("visits.parquet", {"user_id": [1, 2]})
    path = tmp_path / "script.py"
    path.write_text(text)
    sources = {"visits": scene.tumult.rows_with_id(visits)}
    with pytest.raises(UnavailableError, match=said):
        scene.tumult.prepare(path, sources)
    assert scene.status == "reserved"

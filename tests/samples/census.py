"""A census in escrow: people, whose they are, and what analysts ask of them.

The people are those of the UCI Adult table where `MODICUM_ADULT` names it, and made
up elsewhere.
"""

from __future__ import annotations

import csv
import io
from typing import Any, Final

from samples.adult import adult

KEYS: Final = ("education", "marital_status", "occupation", "income")
POLICY: Final = """\
modicum: policy/v1
name: census
units: {person: {id: person}}
schema:
  attributes: {education: low, marital_status: high, occupation: low, income: high}
policies:
  - {name: all, when: "true", unit: person, budget: {eps: 1}}
"""
_TABLES: Final = """\
modicum: tables/v1
tables:
  people:
    row_id: person
    one_per: person
    columns:
      person: {type: integer}
"""


def rows() -> bytes:
    """Return the people as CSV, numbered."""
    columns = [adult()[name].to_pylist() for name in KEYS]
    out = io.StringIO()
    numbered = [(number, *one) for number, one in enumerate(zip(*columns, strict=True))]
    csv.writer(out, lineterminator="\n").writerows([("person", *KEYS), *numbered])
    return out.getvalue().encode()


def values() -> dict[str, tuple[str, ...]]:
    """Return what each column can hold: it is publicly known of the table."""
    return {name: tuple(sorted(set(adult()[name].to_pylist()))) for name in KEYS}


def tables() -> str:
    """Return the tables file that declares the people."""
    declared = [
        f"      {name}: {{type: text, attribute: {name}, values: {list(known)!r}}}\n"
        for name, known in values().items()
    ]
    return _TABLES + "".join(declared)


def query(release: str, eps: str) -> str:
    """Return a query file that counts people, by all that is declared of them."""
    by = ", ".join(KEYS)
    return f"""\
release: {release}
query:
  sql: "SELECT {by}, COUNT(*) AS people FROM people GROUP BY {by}"
  noise: laplace
  loss: {{person: {{eps: {eps}}}}}
"""


def task(evaluation: dict[str, Any]) -> dict[str, Any]:
    """Return the task of telling the income by the other columns, for the catalogue."""
    fit = {
        "fit": "sklearn:LogisticRegression",
        "target": "income",
        "weight": "people",
    }
    return {"task": fit, "evaluate": evaluation}

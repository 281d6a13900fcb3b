"""Write a CSV file of made-up people, like those of the UCI Adult table.

    python examples/adult/look_alike.py adult.csv [--rows 32561]

The same people on every run; nobody of the real table is among them.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from modicum.workloads.adult.people import adult_people
from modicum.workloads.adult.queries import ROWS


def main(arguments: list[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args(arguments)
    people = adult_people(given.rows)
    with given.path.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(people)
        writer.writerows(zip(*people.values(), strict=True))


if __name__ == "__main__":
    main()

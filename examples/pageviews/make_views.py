"""Write views.csv: made-up page views of made-up readers, the same at every run."""

import csv
import random
from pathlib import Path

READERS = 28_000
PAGES = ("main", "news", "history", "help")
COUNTRIES = ("CH", "DE", "FR", "IT")


def main() -> None:
    """Write the file beside this script."""
    lots = random.Random(7)  # noqa: S311 - nobody's data
    rows = []
    for reader in range(READERS):
        country = lots.choice(COUNTRIES)
        for _ in range(lots.choice((1, 3, 8, 30))):
            day = lots.randint(1, 30)
            hour, minute = lots.randint(6, 22), lots.randint(0, 59)
            time = f"2026-11-{day:02}T{hour:02}:{minute:02}:00"
            page = lots.choices(PAGES, (5, 4, 3, 3))[0]
            rows.append((time, f"reader-{reader}", page, country))
    with Path(__file__).with_name("views.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("view_id", "event_time", "user_id", "page", "country"))
        writer.writerows((number, *row) for number, row in enumerate(sorted(rows), 1))
    print(f"views.csv: {len(rows):,} views by {READERS:,} readers")  # noqa: T201


if __name__ == "__main__":
    main()

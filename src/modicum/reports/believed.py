"""What a statement says about losses that were believed, not compared with a price."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.ledger.proof.repricing import Unpriced
from modicum.reports.markup import Markup, element, table


def believed(unpriced: Unpriced) -> Iterator[Markup]:
    """Yield a warning about releases that could not be priced again, if there are any.

    Args:
        unpriced: How many there are, and the first of them.
    """
    count = unpriced.releases
    if not count:
        return
    what = "1 release" if count == 1 else f"{count} releases"
    yield element(
        "p",
        f"{what} could not be priced again, and the stored losses are believed.",
        class_="near",
    )
    more = count - len(unpriced.first)
    yield table(
        f"The first {len(unpriced.first)} of them" if more else "Which, and why",
        ("Entry", "Release", "Mechanism", "Why"),
        [(str(one.seq), one.release, one.mechanism, one.why) for one in unpriced.first],
    )

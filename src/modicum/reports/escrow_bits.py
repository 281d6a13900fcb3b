"""What went out of an escrow that no epsilon describes, in bits."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.reports import limitations
from modicum.reports.escrow_timeline import EscrowStory
from modicum.reports.flows import LetGo
from modicum.reports.markup import Markup, element, table
from modicum.reports.text import NOTHING, SHOWN, few, left_out, newest, when


def not_private(escrow: EscrowStory) -> Iterator[Markup]:
    """Yield a warning for the top of a page, if something went out that no rule counts.

    Args:
        escrow: The escrow.
    """
    out = [one for one in escrow.raw if one.let_go]
    if not out:
        return
    what = "1 contract" if len(out) == 1 else f"{len(out)} contracts"
    yield element(
        "div",
        element("p", f"Scores on exact answers went out under {what}.", class_="over"),
        element("p", limitations.NOT_PRIVATE),
        element("p", element("a", "How many bits, and to whom", href="#bits")),
        class_="box",
        role="note",
    )


def in_bits(escrow: EscrowStory) -> Iterator[Markup]:
    """Yield what each person was told of each data set, and by which contracts.

    Args:
        escrow: The escrow.
    """
    yield element("h3", "Outside differential privacy, in bits", id="bits")
    if not escrow.raw and not escrow.bits:
        yield element("p", "No score on exact answers went out, and none may.")
        return
    yield element("p", limitations.NOT_PRIVATE)
    yield table(
        "What each person was told of each data set by scores on exact answers",
        ("Person", "Data set", "Bits told", "May follow", "Allowed", "By contracts"),
        [
            (
                one.person,
                one.data,
                element("span", f"{one.told} bits", class_="over"),
                f"{one.may_follow} bits",
                f"{one.allowed} bits",
                few(one.contracts),
            )
            for one in escrow.bits[:SHOWN]
        ],
    )
    yield from left_out(len(escrow.bits))
    yield table(
        "Every score on exact answers that was disclosed, the newest first",
        ("Contract", "Analyst", "Data sets", "At most", "Disclosed", "Let go"),
        [
            (
                one.contract.id,
                one.contract.analyst,
                ", ".join(one.contract.data_sets),
                element("span", f"{one.bits} bits", class_="over"),
                when(one.disclosed) if one.disclosed else NOTHING,
                few([_out(out) for out in one.let_go]),
            )
            for one in newest(escrow.raw)
        ],
    )
    yield from left_out(len(escrow.raw))


def _out(out: LetGo) -> str:
    return f"to {out.to}, {when(out.told)}"

"""Binary encoding of cells, for snapshots of balances.

A snapshot is a cache: any irregularity raises `ValueError`, and the log is read
instead.
"""

from __future__ import annotations

import numpy as np

from modicum.accounting import COORDINATES
from modicum.core.canonical import Plain, decode, encode
from modicum.ledger.cells.family import Family
from modicum.ledger.cells.partition import Integers
from modicum.ledger.cells.sums import Amounts
from modicum.policy import RuleSet
from modicum.release import Span

_HEAD = {"segments", "rules", "rounded", "sums"}
_SEGMENTS = {"boxes", "owner", "frozen"}


def dump(family: Family, rules: RuleSet) -> bytes:
    """Return the cells of a unit as bytes; equal cells give equal bytes."""
    lines, sums = family.table()
    head: dict[str, Plain] = {
        "segments": family.segments.dump(),
        "rules": [rules.rule_id(number) for number in family.numbers],
        "rounded": family.rounded,
        "sums": len(sums.rest),
    }
    text = encode(head)
    arrays = (lines, sums.rest, sums.carried)
    blocks = [np.ascontiguousarray(one, dtype="<i8").tobytes() for one in arrays]
    return b"".join([len(text).to_bytes(8, "little"), text, *blocks])


def restore(family: Family, rules: RuleSet, data: bytes) -> None:
    """Take up cells that were dumped.

    Raises:
        ValueError: If the data are not a dump of such cells.
    """
    size = int.from_bytes(data[:8], "little")
    head = decode(data[8 : 8 + size])
    if not isinstance(head, dict) or head.keys() != _HEAD:
        raise ValueError("the head is not that of a dump")
    numbers = [rules.number(str(one)) for one in _list(head["rules"])]
    if None in numbers:
        raise ValueError("a rule is not of this policy")
    count = _restore_segments(family, head["segments"])
    shapes = (len(numbers), 1 + count), *((_integer(head["sums"]), COORDINATES),) * 2
    lines, rest, carried = _arrays(data[8 + size :], shapes)
    known = [number for number in numbers if number is not None]
    sums = Amounts.of(rest, carried)
    family.restore(known, lines, sums, rounded=bool(head["rounded"]))


def _restore_segments(family: Family, plain: Plain) -> int:
    if not isinstance(plain, dict) or plain.keys() != _SEGMENTS:
        raise ValueError("segments are not those of a dump")
    boxes = [
        tuple(
            (_integer(_list(span)[0]), _integer(_list(span)[1])) for span in _list(box)
        )
        for box in _list(plain["boxes"])
    ]
    owner = [_integer(one) for one in _list(plain["owner"])]
    if len(boxes) != len(owner) or not boxes:
        raise ValueError("boxes and their owners do not belong together")
    if any(len(box) != len(family.space.extent) for box in boxes):
        raise ValueError("boxes are not of this space")
    family.segments.restore(boxes, owner, frozen=bool(plain["frozen"]))
    return family.segments.count


def _arrays(data: bytes, shapes: tuple[tuple[int, int], ...]) -> list[Integers]:
    found: list[Integers] = []
    at = 0
    for rows, columns in shapes:
        length = 8 * rows * columns
        block = np.frombuffer(data[at : at + length], dtype="<i8")
        found.append(block.reshape(rows, columns).astype(np.int64))
        at += length
    if at != len(data):
        raise ValueError("there are bytes left over")
    return found


def _span(plain: Plain) -> Span:
    low, high = map(_integer, _list(plain))
    return low, high


def _list(plain: Plain) -> list[Plain]:
    if not isinstance(plain, list):
        raise ValueError("a list was expected")  # noqa: TRY004 - bad data
    return plain


def _integer(plain: Plain) -> int:
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise ValueError("an integer was expected")  # noqa: TRY004 - bad data
    return plain

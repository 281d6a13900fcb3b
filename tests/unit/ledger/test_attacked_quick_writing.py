"""What the strict writer refuses, the quick one leaves to it."""

from __future__ import annotations

from typing import Any

import pytest

from modicum.ledger.log.chain import GENESIS, seal
from modicum.ledger.log.events import Event, ReleaseStarted
from modicum.ledger.log.fast_codec import write_release_entry

EVENT = Event("2026-05-01T12:00:00.000000Z", "tester", ReleaseStarted("r"))


@pytest.mark.parametrize(("seq", "previous"), [(1.0, GENESIS), (1, b"0"), (1, 0.5)])
def test_a_number_and_a_hash_are_what_they_are(seq: Any, previous: Any) -> None:
    assert write_release_entry(EVENT, 1, GENESIS) is not None
    assert write_release_entry(EVENT, seq, previous) is None
    with pytest.raises(TypeError):
        seal(EVENT, seq, previous)

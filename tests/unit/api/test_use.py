"""A reservation in use: started before anything runs, published at the end, once."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.small import counts, workspace

from modicum.accounting.budgets import (
    ApproxBudget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    ZcdpBudget,
)
from modicum.accounting.grid import DELTA, RHO
from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.api.ports.reservation import Reserved
from modicum.core.errors import Code, ConflictError, InputError, UsageError
from modicum.integrations.loader import Adapters


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    """A ledger with the reserved release `r-1` of one mechanism, `counts`."""
    found = workspace(tmp_path)
    found.submit(counts("r-1", rho="0.01"))
    return found


def status(ws: Workspace, release: str = "r-1") -> str:
    return ws.standing(release).status.value


def events(ws: Workspace) -> list[str]:
    return [str(record.seq) for record in ws.records()]


def test_it_starts_when_entered_and_posts_when_left(ws: Workspace) -> None:
    use = Use(ws, "r-1")
    assert status(ws) == "reserved"
    with use as entered:
        assert entered is use
        assert use.release == "r-1"
        assert status(ws) == "started"
        use.claim("counts")
        assert status(ws) == "started"
    assert status(ws) == "published"


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_it_started(
    ws: Workspace, kind: type[BaseException]
) -> None:
    with pytest.raises(kind), Use(ws, "r-1"):
        raise kind
    assert status(ws) == "started"
    with pytest.raises(ConflictError, match="is started and cannot be started"):
        Use(ws, "r-1")


def test_only_what_is_reserved_is_used(ws: Workspace) -> None:
    with pytest.raises(InputError, match="unknown release `r-2`"):
        Use(ws, "r-2")
    ws.cancel("r-1", reason="test")
    with pytest.raises(ConflictError) as caught:
        Use(ws, "r-1")
    assert caught.value.code is Code.RELEASE_STATE
    assert "new id" in caught.value.problems[0].help
    before = events(ws)
    ws.submit(counts("r-3"), publish=True)
    with pytest.raises(ConflictError, match="is published"):
        Use(ws, "r-3")
    assert len(events(ws)) > len(before)


def test_a_reservation_that_is_gone_when_entered_is_not_used(ws: Workspace) -> None:
    use = Use(ws, "r-1")
    ws.cancel("r-1", reason="test")
    with pytest.raises(ConflictError, match="is canceled"), use:
        raise AssertionError
    with pytest.raises(ConflictError, match="before the block"):
        use.claim("counts")
    ws.submit(counts("r-2"))
    with Use(ws, "r-2"):  # The failed one holds nothing.
        assert status(ws, "r-2") == "started"


def test_nothing_runs_outside_of_the_block(ws: Workspace) -> None:
    use = Use(ws, "r-1")
    with pytest.raises(ConflictError, match="before the block"):
        use.must_run()
    with use:
        use.must_run()
    with pytest.raises(ConflictError, match="after the block"):
        use.claim("counts")
    with pytest.raises(ConflictError, match="has ended"), use:
        raise AssertionError


def test_each_mechanism_runs_once(ws: Workspace) -> None:
    with Use(ws, "r-1") as use:
        assert use.mechanisms == ("counts",)
        use.claim("counts")
        with pytest.raises(ConflictError, match="has already run"):
            use.claim("counts")
        with pytest.raises(InputError, match="no mechanism `count`") as caught:
            use.claim("count")
        assert 'did you mean "counts"?' in caught.value.problems[0].help


def test_one_use_at_a_time(ws: Workspace) -> None:
    ws.submit(counts("r-2"))
    with Use(ws, "r-1"):
        with pytest.raises(ConflictError, match="another reservation"):
            Use(ws, "r-2").__enter__()
        assert status(ws, "r-2") == "reserved"
    with Use(ws, "r-2"):
        assert status(ws, "r-2") == "started"


def test_what_does_not_end_as_reserved_is_not_posted(ws: Workspace) -> None:
    def ending() -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError), Use(ws, "r-1") as use:
        use.before_post(ending)
    assert status(ws) == "started"


def test_a_use_within_a_started_release_neither_starts_nor_posts(ws: Workspace) -> None:
    noted: list[str] = []

    def first(mechanism: str) -> bool:
        noted.append(mechanism)
        return noted.count(mechanism) == 1

    with pytest.raises(ConflictError, match="reserved, and not started") as caught:
        Use(ws, "r-1", within=first)
    assert "modicum release run r-1" in caught.value.problems[0].help
    ws.start("r-1")
    with Use(ws, "r-1", within=first) as use:
        use.claim("counts")
    with (
        pytest.raises(ConflictError, match="has already run"),
        Use(ws, "r-1", within=first) as use,
    ):
        use.claim("counts")
    assert noted == ["counts", "counts"]
    assert status(ws) == "started"


def in_a_copy(work: Callable[[], None]) -> str:
    """Return what a copy of this process says of some work."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        text = "done"
        try:
            work()
        except ConflictError as error:
            text = str(error)
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def test_a_copy_of_the_process_runs_and_posts_nothing(ws: Workspace) -> None:
    use = Use(ws, "r-1", Adapters())
    with use:
        assert "a copy" in in_a_copy(lambda: use.claim("counts"))
        assert in_a_copy(lambda: use.__exit__(None, None, None)) == "done"
        assert status(ws) == "started"
        use.claim("counts")
    assert status(ws) == "published"


def test_without_other_libraries_there_are_none(ws: Workspace) -> None:
    with pytest.raises(UsageError, match="no other libraries"):
        Use(ws, "r-1").opendp("counts")


def described(**cost: Any) -> dict[str, Any]:
    return {
        "release": "d-1",
        "mechanisms": [
            {
                "name": f"m{number}",
                "mechanism": "declared",
                "attributes": ["age"],
                "cost": {"user": cost},
            }
            for number in (1, 2)
        ],
    }


@pytest.mark.parametrize(
    ("cost", "budget"),
    [
        ({"eps": Fraction(1, 3)}, PureBudget(Fraction(1, 3))),
        (
            {"eps": 0.1, "delta": 1e-8},
            ApproxBudget(Fraction(1, 10), Fraction(1, 10**8)),
        ),
        ({"rho": 0.002}, ZcdpBudget(Fraction(1, 500))),
        ({"mu": 0.05}, GdpBudget(Fraction(1, 20))),
        (
            {"rdp": {1.5: 0.001, 8: 0.02}},
            RenyiBudget(
                ((Fraction(3, 2), Fraction(1, 1000)), (Fraction(8), Fraction(1, 50)))
            ),
        ),
    ],
)
def test_what_is_reserved_is_told_exactly(
    tmp_path: Path, cost: dict[str, Any], budget: object
) -> None:
    ws = workspace(tmp_path)
    ws.backfill(described(**cost))
    recorded = ws.release_of(ws.standing("d-1")).mechanisms[0]
    one = Reserved(recorded)
    assert one.cost("user") == budget
    assert one.units == ("user",)
    assert one.relation("user") == "add-remove"
    assert one.loss("user").charged == recorded.losses["user"]


def test_losses_add_up_and_unknown_units_are_named(ws: Workspace) -> None:
    use = Use(ws, "r-1")
    one = use.mechanism("counts").loss("user")
    assert one.rho == Fraction(1, 100)
    assert one.eps is None
    assert one.delta == 0
    assert use.loss("user").charged == one.charged
    with pytest.raises(InputError, match="unknown privacy unit `users`"):
        use.loss("users")
    ws.submit({**described(eps=Fraction(1, 10), delta=1e-9)})
    both = Use(ws, "d-1").loss("user")
    assert both.eps == Fraction(1, 5)
    assert both.delta == 2 * Fraction(1, 10**9)
    alone = Use(ws, "d-1").mechanism("m1").loss("user").charged.coordinates
    assert both.charged.coordinates[DELTA] == 2 * alone[DELTA]
    assert both.charged.coordinates[RHO] == 2 * alone[RHO]

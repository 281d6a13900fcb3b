"""OpenDP's Context under a reservation. It needs Polars of one version.

MODICUM_OPENDP_POLARS=required makes its absence a failure.
"""

from __future__ import annotations

import os
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from samples.small import workspace

from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.core.errors import ConflictError, InputError, UnavailableError
from modicum.integrations.loader import Adapters

if os.environ.get("MODICUM_OPENDP_POLARS") != "required":
    pytest.importorskip("polars")

dp: Any = import_module("opendp.prelude")
pl: Any = import_module("polars")

dp.enable_features("contrib")

# About how counts are told in a later version.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

GROUPS = [dp.polars.Margin(by=["g"], max_length=1000, invariant="keys")]
LISTED: dict[str, Any] = {"margins": GROUPS}


def frame() -> Any:
    return pl.LazyFrame({"g": [str(i % 3) for i in range(600)], "x": [1] * 600})


def reserve(ws: Workspace, **cost: Any) -> Use:
    one = {"name": "counts", "mechanism": "declared", "attributes": ["age"]}
    release = {"release": "r-1", "mechanisms": [{**one, "cost": {"user": cost}}]}
    assert ws.submit(release).allowed
    return Use(ws, "r-1", Adapters())


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


def opened(use: Use, rows: int = 10, **more: Any) -> Any:
    given = {**LISTED, **more}
    return use.opendp("counts").context(
        frame(), privacy_unit=dp.unit_of(contributions=rows), **given
    )


def counted(context: Any) -> Any:
    return context.query().group_by("g").agg(dp.len())


@pytest.mark.parametrize(
    ("cost", "kind"),
    [
        ({"eps": Fraction(1, 3)}, "eps"),
        ({"rho": Fraction(1, 300)}, "rho"),
        ({"eps": Fraction(1, 3), "delta": Fraction(1, 10**8)}, "eps"),
    ],
)
def test_one_query_has_what_is_reserved(
    ws: Workspace, cost: dict[str, Fraction], kind: str
) -> None:
    use = reserve(ws, **cost)
    with use:
        context = opened(use)
        query = counted(context)
        stated = query.resolve().map(10)
        table = query.release().collect()
        with pytest.raises(ValueError, match="exhausted"):
            counted(context)
    assert table.height == 3
    loss = Fraction(stated[0] if isinstance(stated, tuple) else stated)
    assert cost[kind] * (1 - Fraction(1, 10**6)) < loss <= cost[kind]
    assert ws.standing("r-1").status.value == "published"


def test_a_second_context_has_nothing(ws: Workspace) -> None:
    use = reserve(ws, eps=0.5)
    with use:
        first, second = opened(use), opened(use)
        counted(first).release()
        with pytest.raises(ConflictError, match="has already run"):
            counted(second).release()


def test_groups_that_are_found_by_a_threshold_are_refused(ws: Workspace) -> None:
    """OpenDP 0.16 states too low a delta for them."""
    use = reserve(ws, eps=0.5, delta=1e-8)
    found = [dp.polars.Margin(by=["g"], max_length=1000)]
    with pytest.raises(InputError, match="threshold"), use:
        counted(opened(use, margins=found)).release()


def test_nothing_is_read_outside_of_the_block(ws: Workspace) -> None:
    use = reserve(ws, eps=0.5)
    with pytest.raises(ConflictError, match="before the block"):
        opened(use)
    with use:
        context = opened(use)
        late = counted(context)
        frame_of_noise = late.release()
    with pytest.raises(ConflictError, match="after the block"):
        frame_of_noise.collect()
    with pytest.raises(ConflictError, match="after the block"):
        late.release()


def test_a_failure_tells_nothing_of_the_data(ws: Workspace) -> None:
    use = reserve(ws, eps=0.5)
    secret = pl.LazyFrame({"g": ["a"], "x": ["secret-77"]})
    numbers = secret.with_columns(pl.col("x").cast(pl.Int64, strict=True))
    total = pl.col("x").fill_null(0).dp.sum((0, 5))

    def script() -> None:
        with use:
            context = use.opendp("counts").context(
                numbers, privacy_unit=dp.unit_of(contributions=1), **LISTED
            )
            context.query().group_by("g").agg(total).release().collect()

    with pytest.raises(UnavailableError) as caught:
        script()
    assert "secret" not in caught.value.render()
    assert caught.value.__context__ is None


def test_a_cost_that_opendp_has_no_word_for_is_refused(ws: Workspace) -> None:
    use = reserve(ws, mu=0.1)
    with pytest.raises(InputError, match="in eps, in eps and delta, or in rho"), use:
        opened(use)

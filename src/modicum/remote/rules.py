"""Where rules stand, as a server tells it: in amounts for people."""

from __future__ import annotations

import msgspec


class RuleStanding(msgspec.Struct, frozen=True):
    """Where a rule stands (docs/reference/json.md).

    Attributes:
        rule: Its id.
        unit: Its privacy unit.
        stage: `release` or `history`.
        cell: Its fullest cell in words; None if it has one only.
        allowed: Whether it is within its limit.
        measure: What is compared.
        spent: What was charged; infinite if no bound is proven.
        limit: What is admitted.
        budget: The budget in words.
        when: When the rule holds.
        source: Where it stands in the policy.
        state: How full it is: `ok`, `near`, `OVER` or `not limited`.
        cause: Why it is over in every period, in words; None if it is not.
    """

    rule: str
    unit: str
    stage: str
    cell: str | None
    allowed: bool
    measure: str
    spent: float
    limit: float
    budget: str
    when: str
    source: tuple[str, ...]
    state: str
    cause: str | None = None


class Spender(msgspec.Struct, frozen=True):
    """What one release takes of a rule.

    Attributes:
        release: Its id, or words if it is not for whoever asks.
        coordinate: What it is measured by.
        amount: Its loss on that; infinite if no bound is proven.
        share: Which part of the sum that is; None if the sum is infinite.
        undated: Whether it is charged to every period, because it names no `periods`.
    """

    release: str
    coordinate: str
    amount: float
    share: float | None
    undated: bool = False


class Head(msgspec.Struct, frozen=True):
    """How far a log goes.

    Attributes:
        seq: The number of its last entry.
        head: The hash of that entry.
    """

    seq: int
    head: str


class CellSpent(msgspec.Struct, frozen=True):
    """What the fullest cell of a rule was charged, and by whom.

    Attributes:
        rule: The id of the rule.
        unit: Its privacy unit.
        cell: The cell in words; None if there is one only.
        cells: How many there are.
        allowed: Whether the rule is within its limit there.
        measure: What is compared.
        spent: What was charged; infinite if no bound is proven.
        limit: What is admitted.
        rho_left: How much rho of Gaussian noise still fits; None if nothing is
            enforced.
        releases: How many releases were charged there.
        spenders: The largest of them first.
        nearby: What was charged for others, where cells are too many to be told apart.
        ledger: What it was found on.
        cause: Why it is over, if `periods` are missing, in words; None if not.
    """

    rule: str
    unit: str
    cell: str | None
    cells: int
    allowed: bool
    measure: str
    spent: float
    limit: float
    rho_left: float | None
    releases: int
    spenders: tuple[Spender, ...]
    nearby: float
    ledger: Head
    cause: str | None = None

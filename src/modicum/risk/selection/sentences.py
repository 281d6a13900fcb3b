"""What every choice of a kind must be told with."""

from __future__ import annotations

from modicum.risk.profile import RELATION

RELATIVE = (
    "The indicator compares people; a ratio near 1 is no bound on what a release"
    " reveals. Epsilon is that bound. Both are of tables with and without all rows of"
    f" one person ({RELATION})."
)
FROM_ROWS = (
    "This epsilon is computed from rows without noise. A release at it is not"
    " differentially private for any finite epsilon, and a refusal tells as much."
)
CHARGE_SELECTION = (
    "The choice itself must be charged, before it is made and whatever it finds:"
    " `modicum risk choose --release ID --charge UNIT` does. A release at the chosen"
    " epsilon is charged on top, through a filter."
)
UNPROVEN = (
    "The classical standard deviation does not reach some of these (epsilon, delta);"
    " such candidates do not pass."
)
CLASSICAL = (
    "The classical standard deviation is proven for epsilon up to 1 only;"
    " at some epsilons above, its delta is larger than the one that is named."
)
LESS_THAN_NOISE = (
    "The threshold is below three times the width of the noise it is compared with:"
    " what is chosen is mostly chance."
)
NOT_OWN_ROWS = (
    "how far a person moves this answer depends on the rows of others,"
    " so that no sensitivity of the choice is proven; nothing was read"
)
UNREACHED = "the noise of no candidate reaches its epsilon and delta; nothing was read"

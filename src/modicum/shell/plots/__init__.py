"""Pictures of plans, as SVG or PNG; they need the extra `plots`.

What is drawn is public: choices, requests and budgets, never anything about rows.
"""

from modicum.shell.plots.allocations import (
    accepted_by_size,
    budget_left,
    utility_by_round,
)
from modicum.shell.plots.canvas import check_path, save
from modicum.shell.plots.rotation_outlook import rotation_outlook

__all__ = [
    "accepted_by_size",
    "budget_left",
    "check_path",
    "rotation_outlook",
    "save",
    "utility_by_round",
]

"""Pictures of plans and of risk, as SVG or PNG; they need the extra `plots`.

What is drawn of plans is public: choices, requests and budgets. Pictures of risk are
about the people in a table, and say in themselves that they are for its controller.
"""

from modicum.shell.plots.allocations import (
    accepted_by_size,
    budget_left,
    utility_by_round,
)
from modicum.shell.plots.canvas import check_path, save
from modicum.shell.plots.risk_groups import risk_groups
from modicum.shell.plots.risk_histogram import risk_histogram
from modicum.shell.plots.risk_ranges import risk_ranges
from modicum.shell.plots.rotation_outlook import rotation_outlook

__all__ = [
    "accepted_by_size",
    "budget_left",
    "check_path",
    "risk_groups",
    "risk_histogram",
    "risk_ranges",
    "rotation_outlook",
    "save",
    "utility_by_round",
]

"""Charts of plans, as SVG or PNG; they need the extra `plots`.

The charted data is public: choices, requests and budgets.
"""

from modicum.reports.charts.allocations import (
    accepted_by_size,
    budget_left,
    utility_by_round,
)
from modicum.reports.charts.canvas import check_path, save
from modicum.reports.charts.rotation import rotation_outlook

__all__ = [
    "accepted_by_size",
    "budget_left",
    "check_path",
    "rotation_outlook",
    "save",
    "utility_by_round",
]

"""Charts as SVG, each with a sentence and a table; for pages, files and notebooks.

The charted data is public: choices, requests and budgets.
"""

from modicum.reports.charts.allocations import (
    accepted_by_size,
    budget_left,
    utility_by_round,
)
from modicum.reports.charts.charges import cell_history, meter
from modicum.reports.charts.chart import Chart, check_path, save
from modicum.reports.charts.hasse import hasse_chart
from modicum.reports.charts.rotation import rotation_outlook

__all__ = [
    "Chart",
    "accepted_by_size",
    "budget_left",
    "cell_history",
    "check_path",
    "hasse_chart",
    "meter",
    "rotation_outlook",
    "save",
    "utility_by_round",
]

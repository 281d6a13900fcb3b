"""Charts of risk, as SVG.

They concern the people in a table, and are marked as for its controller.
"""

from modicum.risk.charts.groups import risk_groups
from modicum.risk.charts.histogram import risk_histogram
from modicum.risk.charts.ranges import risk_ranges

__all__ = ["risk_groups", "risk_histogram", "risk_ranges"]

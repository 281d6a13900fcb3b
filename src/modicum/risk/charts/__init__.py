"""Pictures of risk, as SVG or PNG; they need the extra `plots`.

They are about the people in a table, and say in themselves that they are for its
controller.
"""

from modicum.risk.charts.groups import risk_groups
from modicum.risk.charts.histogram import risk_histogram
from modicum.risk.charts.ranges import risk_ranges

__all__ = ["risk_groups", "risk_histogram", "risk_ranges"]

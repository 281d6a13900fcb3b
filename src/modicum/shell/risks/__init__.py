"""Risk of one query for the people in a controller's tables, measured and shown."""

from modicum.risk.candidates import PUBLISHED, grid
from modicum.shell.risks.data import ControllerData
from modicum.shell.risks.measuring import measure, measure_again
from modicum.shell.risks.publicly import choose_publicly, unseen_risk
from modicum.shell.risks.study import Risk, count, rdr

__all__ = [
    "PUBLISHED",
    "ControllerData",
    "Risk",
    "choose_publicly",
    "count",
    "grid",
    "measure",
    "measure_again",
    "rdr",
    "unseen_risk",
]

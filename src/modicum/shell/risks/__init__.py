"""Risk of one query for the people in a controller's tables, measured and shown."""

from modicum.risk.candidates import PUBLISHED, grid
from modicum.risk.choosing.above_spent import PublishedOdometer, find_above_spent
from modicum.risk.choosing.from_pri import find_from_pri
from modicum.risk.choosing.priorities import Wish, by_priority
from modicum.risk.choosing.thresholds import RatioAtLeast
from modicum.risk.noise import GaussianNoise, LaplaceNoise
from modicum.shell.risks.data import ControllerData
from modicum.shell.risks.measuring import measure, measure_again
from modicum.shell.risks.publicly import choose_publicly, unseen_risk
from modicum.shell.risks.study import Risk, count, rdr

__all__ = [
    "PUBLISHED",
    "ControllerData",
    "GaussianNoise",
    "LaplaceNoise",
    "PublishedOdometer",
    "RatioAtLeast",
    "Risk",
    "Wish",
    "by_priority",
    "choose_publicly",
    "count",
    "find_above_spent",
    "find_from_pri",
    "grid",
    "measure",
    "measure_again",
    "rdr",
    "unseen_risk",
]

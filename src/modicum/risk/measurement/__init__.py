"""Risk of one query for the people in a controller's tables, measured and shown."""

from modicum.risk.candidates import PUBLISHED, grid
from modicum.risk.measurement.data import ControllerData
from modicum.risk.measurement.influence import measure, measure_again
from modicum.risk.measurement.public_choice import choose_publicly, unseen_risk
from modicum.risk.measurement.study import Risk, count, rdr
from modicum.risk.noise import GaussianNoise, LaplaceNoise
from modicum.risk.selection.priorities import Priority, by_priority
from modicum.risk.selection.published import (
    PublishedOdometer,
    find_above_spent,
    find_from_pri,
)
from modicum.risk.selection.thresholds import RatioAtLeast

__all__ = [
    "PUBLISHED",
    "ControllerData",
    "GaussianNoise",
    "LaplaceNoise",
    "Priority",
    "PublishedOdometer",
    "RatioAtLeast",
    "Risk",
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

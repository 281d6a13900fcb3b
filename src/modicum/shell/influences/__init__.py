"""Influence measured on data: engines run the statements of `modicum.risk`."""

from modicum.shell.influences.data import ControllerData
from modicum.shell.influences.measuring import measure

__all__ = ["ControllerData", "measure"]

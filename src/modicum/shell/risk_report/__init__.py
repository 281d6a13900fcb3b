"""What a question's risk is, as one page for the controller of the data."""

from modicum.shell.risk_report.page import risk_report

__all__ = ["risk_report"]

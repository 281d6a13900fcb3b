"""What a question's risk is, as one page for the controller of the data."""

from modicum.risk.report.page import risk_report

__all__ = ["risk_report"]

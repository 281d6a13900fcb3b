"""A question's risk, as one page for the data controller."""

from modicum.risk.report.page import risk_report

__all__ = ["risk_report"]

"""Contracts for data that stays in place: programs, runs, disclosures.

Analysts never see rows or exact answers. Every disclosure is under a contract that the
owners of the data approved. All code here is pure: storage and execution are elsewhere.
"""

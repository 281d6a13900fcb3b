"""Contracts for data that stays where it is: programs, runs, what goes out.

Analysts never see rows or exact answers. Whatever leaves does so under a contract that
the owners of the data approved, and everything here is pure: the shell keeps the data
and runs the programs.
"""

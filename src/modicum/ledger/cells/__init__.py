"""Cells: where, in people and time, a rule is charged.

The instances of a privacy unit are divided by what is public and fixed about them:
partitioning attributes that never change, the period they last, the user group they
belong to. What reads disjoint parts composes in parallel, and only there.
"""

"""Cells: the parts of population and time that a rule is charged for.

The instances of a privacy unit are divided by public, fixed properties: partitioning
attributes that never change, their period, their user group. Mechanisms on disjoint
parts compose in parallel, and only there.
"""

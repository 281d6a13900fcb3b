"""Pruning: which rules can never be the only one to deny a release, and why.

`prune` is for the rules over history, `prune_alone` for the single-release rules. Both
apply theorem 5.1 of DPolicy to every pair of rules, exactly, by way of chains of
budgets: see docs/explanation/pruning.md.
"""

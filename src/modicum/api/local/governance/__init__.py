"""Governance: approvals, activations, remarks, and authority to vote."""

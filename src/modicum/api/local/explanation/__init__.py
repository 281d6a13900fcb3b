"""Explanations: policy and ledger facts as text and numbers."""

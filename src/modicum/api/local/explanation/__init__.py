"""Explaining: policy and ledger facts in words and numbers."""

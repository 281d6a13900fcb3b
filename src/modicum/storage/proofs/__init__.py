"""Proofs in files: keys, bundles, receipts, and how they are verified."""

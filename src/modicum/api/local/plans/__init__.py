"""Planning on the real ledger: rounds, requests, plans, and what they let be read."""

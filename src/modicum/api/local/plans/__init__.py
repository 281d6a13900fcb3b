"""Planning on a live ledger: rounds, requests, plans, and their grants."""

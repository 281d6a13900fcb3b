"""Operating a ledger: wiring, files, backups, the doctor, the escrow put together."""

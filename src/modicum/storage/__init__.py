"""SQLite and PostgreSQL: where ledgers are stored, and who may write next."""

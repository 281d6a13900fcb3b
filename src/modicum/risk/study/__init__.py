"""What the controller of a table is shown of a question's risk, as plain values."""

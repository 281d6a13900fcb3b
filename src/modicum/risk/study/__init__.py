"""The displayed data of a question's risk, as plain values."""

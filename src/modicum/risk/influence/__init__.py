"""The change of an answer without the rows of one person, for all people."""

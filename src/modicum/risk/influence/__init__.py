"""How far an answer moves when the rows of one person are gone, for all people."""

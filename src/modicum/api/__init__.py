"""The product's interface: what each operation takes and answers."""

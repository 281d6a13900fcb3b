"""Reading a policy's declarations: names, units, people and the population."""

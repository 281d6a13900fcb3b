"""Reading what a policy declares: names, units, people and the population."""

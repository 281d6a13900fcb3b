"""What is wrong with a policy that reads well: errors of meaning, and warnings."""

"""From one measure of privacy to another, and to epsilon at a delta."""

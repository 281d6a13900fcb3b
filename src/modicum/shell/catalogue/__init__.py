"""The catalogue of tasks as it is installed, and trying programs out."""

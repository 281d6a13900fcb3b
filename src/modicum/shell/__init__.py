"""The shell: files, clocks and databases; the one place that chooses."""

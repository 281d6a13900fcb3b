"""Running a workload through the planner, to see the effect of a setting."""

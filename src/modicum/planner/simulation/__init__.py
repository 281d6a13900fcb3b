"""Running a workload through the planner, to see what a setting would bring."""

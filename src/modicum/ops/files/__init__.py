"""Files that people write: policies, releases, requests, queries, workloads."""

"""The routes under `/api/v1`, by resource."""

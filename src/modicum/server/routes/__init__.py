"""What the server answers under `/api/v1`, resource by resource."""

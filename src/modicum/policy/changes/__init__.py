"""Policy changes: what another policy tightens, loosens, adds and removes."""

"""Who may do what: identities, their roles, and the data sets that these are for."""

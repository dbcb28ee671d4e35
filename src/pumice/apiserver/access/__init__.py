"""Who may do what: users, the roles that are bound to them, tokens of service accounts, and the checks on whoever grants rights to others."""

"""The migration as one page that a team can read: no scripts, nothing from outside."""

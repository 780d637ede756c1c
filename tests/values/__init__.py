"""Which object an expression is."""

"""What computes a loss: a slice backwards over statements, calls and code that runs later."""

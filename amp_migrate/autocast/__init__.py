"""Which statements run under autocast: forward passes, losses, evaluation, and what must not."""

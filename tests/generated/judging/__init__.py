"""Whether a generated program trains after its migration as before."""

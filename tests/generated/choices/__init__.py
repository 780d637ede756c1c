"""What a generated program may be made of, and what goes together."""

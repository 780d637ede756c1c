"""What a path remembers: of variables, counters, other names, tests and calls."""

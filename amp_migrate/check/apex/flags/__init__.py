"""Which flags have to do with which."""

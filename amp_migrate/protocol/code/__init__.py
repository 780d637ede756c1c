"""The functions that a machine goes through: their points, calls, handlers and entries."""

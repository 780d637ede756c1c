"""The parts of one statement."""

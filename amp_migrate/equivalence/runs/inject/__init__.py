"""The folder that goes first on PYTHONPATH of a recorded run."""

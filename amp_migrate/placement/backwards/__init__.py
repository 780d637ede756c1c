"""Backward passes beside those that Apex scaled, and whether they are scaled too."""

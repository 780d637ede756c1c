"""Judges two recorded runs: step by step, operator by operator, or within the noise of repeated runs."""

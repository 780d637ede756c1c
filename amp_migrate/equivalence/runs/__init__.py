"""Copies of a project, and recorded runs of its program."""

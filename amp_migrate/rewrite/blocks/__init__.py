"""Statements and the blocks that they form."""

"""Optimizer steps: the accumulation boundary, `update()`, and the ways past them."""

"""Variants of trainings, and what becomes of them."""

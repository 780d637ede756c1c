"""Apex's calls become those of a GradScaler."""

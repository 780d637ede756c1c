"""Modules, functions and classes of the files, and what names and imports refer to."""

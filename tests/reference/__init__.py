"""Tests of the reference implementation of apex.amp."""

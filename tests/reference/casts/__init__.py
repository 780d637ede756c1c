"""Tests of what is cast under the reference Apex."""

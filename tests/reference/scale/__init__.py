"""Tests of the loss scale under the reference Apex."""

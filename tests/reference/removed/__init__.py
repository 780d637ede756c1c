"""Tests of what Apex had beside amp, and of its older interfaces."""

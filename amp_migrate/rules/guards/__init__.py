"""Tests, guards and imports that only exist for Apex go."""

"""The result of a verification for people and programs."""

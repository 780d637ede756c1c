"""What O1 cast in whatever ran, and O2 and O3 only in the networks that they were given."""

"""What one file says. Facts only read."""

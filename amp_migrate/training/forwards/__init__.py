"""What runs a network, at once or later, and what does not mind whether casts are on."""

"""What native code does wrong between a backward and the next step."""

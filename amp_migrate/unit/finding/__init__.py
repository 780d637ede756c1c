"""What belongs to a unit: its networks, steps and backward passes."""

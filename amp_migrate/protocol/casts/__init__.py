"""What runs inside autocast blocks."""

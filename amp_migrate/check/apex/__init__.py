"""What Apex did in the old text: when it was on, and what it was given."""

"""What calls run, what they hand on, and what functions answer."""

"""What comes into a text: it must have to do with AMP."""

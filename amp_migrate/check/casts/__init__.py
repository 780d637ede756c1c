"""Where casts were on in the old text, and are in the new."""

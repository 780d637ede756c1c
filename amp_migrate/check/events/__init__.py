"""The events of the old and the new text, compared path by path."""

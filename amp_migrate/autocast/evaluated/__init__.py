"""Forward passes that feed no backward: where they are, and what is computed of what they give."""

"""What runs inside the user's training process: hooks that record, and switches that make runs comparable."""

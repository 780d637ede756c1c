"""What is written is checked before it is used: its text, and the training that it is."""

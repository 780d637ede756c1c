"""What belongs to one `amp.initialize`, in however many functions, classes and files."""

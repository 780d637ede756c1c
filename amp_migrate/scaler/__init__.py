"""Where the GradScaler lives, and how every function that needs it reaches it."""

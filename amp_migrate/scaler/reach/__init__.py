"""Whether a function can get hold of the GradScaler where it needs it, and why not."""

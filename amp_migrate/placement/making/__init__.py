"""Where the GradScaler is made, and what stands for it where it is not."""

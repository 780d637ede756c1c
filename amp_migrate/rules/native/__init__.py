"""What native code does wrong with its GradScaler and autocast, and how it is spelt."""

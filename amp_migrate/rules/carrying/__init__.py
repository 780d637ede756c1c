"""The GradScaler is where the program needs it, in its functions and in its checkpoints."""

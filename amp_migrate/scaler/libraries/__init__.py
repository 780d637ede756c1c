"""Libraries that carry the GradScaler, or initialize Apex, themselves."""

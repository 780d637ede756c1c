"""What is scaled, unscaled, read and cleared in both texts, and when."""

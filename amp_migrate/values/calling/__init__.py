"""What calls let flow into functions, and what they give back."""

"""What happens to gradients from the first backward of a window to the step that takes them."""

"""Known mistakes in the order of backward, clip, step and zero_grad."""

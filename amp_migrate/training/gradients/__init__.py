"""What a training does with the gradients of parameters: reads, clears, keeps and changes them."""

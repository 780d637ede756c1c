"""What is computed of the outputs of networks: products, powers and sums."""

"""What works in FP32 and not in 16 bits: operations, products of matrices, threads."""

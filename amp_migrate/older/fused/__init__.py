"""`FusedAdam` as it was until 2019, which scaled, clipped and stepped in one with the `FP16_Optimizer` around it."""

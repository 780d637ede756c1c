"""The events of a training: what scales, clears, reads and steps on gradients, in native code."""

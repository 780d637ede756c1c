"""An FP32 training as it is found, and as it is described to the planner."""

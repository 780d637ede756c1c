"""From plain FP32 training to native AMP: the same planner, engine and check, with rules of its own."""

"""What native AMP asks of a training: the states of gradients, GradScaler and casts along every path."""

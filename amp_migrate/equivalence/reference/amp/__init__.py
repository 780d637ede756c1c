"""`apex.amp` itself: initialize, its levels and state, the scale_loss block."""

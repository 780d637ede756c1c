"""Reads and clears of gradients, and where `unscale_` stands before them."""

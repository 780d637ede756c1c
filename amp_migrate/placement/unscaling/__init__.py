"""Where `unscale_` stands: before every read of gradients, behind the last backward, once per step."""

"""Where the native calls around gradients go."""

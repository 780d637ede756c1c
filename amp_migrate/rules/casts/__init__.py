"""What is cast besides the regions of autocast, what must stay out of its casts, and what the source casts itself."""

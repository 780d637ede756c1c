"""What must stay out of the casts of autocast, in fp32, and what the source casts itself."""

"""What must stay out of the casts of autocast, in fp32."""

"""What reads, writes or only keeps gradients and losses."""

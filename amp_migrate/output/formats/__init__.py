"""Reports for other programs."""

"""Products of what networks give, and of fp32 by functions that O1 had on no list."""

"""Programs that hold something else beside Apex: which branches and functions only run under it, and what stays."""

"""Objects as nodes of a graph: which are the same, and which flow into which."""

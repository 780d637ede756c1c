"""One machine over all paths of a program, to a fixpoint."""

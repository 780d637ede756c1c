"""The control-flow graph of one function, module or class body."""

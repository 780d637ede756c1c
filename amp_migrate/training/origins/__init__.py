"""Where values come from: assignments that reach a read, parameters, results of helpers, what a container was given."""

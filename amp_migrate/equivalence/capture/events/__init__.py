"""The events of a training that a recorded process writes down, and what is counted of them."""

"""Programs with a training that one unit of Apex ties together, for the tests of what is decided about it."""

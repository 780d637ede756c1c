"""Stand-ins for a GPU and for data that are not there."""

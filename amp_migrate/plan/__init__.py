"""What will be done, as data, and how it is put together."""

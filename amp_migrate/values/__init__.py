"""Which expressions hold the same object, across functions, classes and files."""

"""What speaks against new texts of a training; those of several programs, each by itself."""

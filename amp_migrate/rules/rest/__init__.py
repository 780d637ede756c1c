"""What else was part of Apex."""

"""Other known mistakes of code that uses Apex."""

"""Where a program uses what Apex had beside amp, and in what way."""

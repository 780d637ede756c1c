"""What differs between Apex and native AMP in a recorded process: which one it gets, and how each is followed."""

"""Which networks `amp.initialize` was given, and which it surely was not."""

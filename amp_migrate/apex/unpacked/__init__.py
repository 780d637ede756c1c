"""What a mapping of options holds where `amp.initialize` unpacks it."""

"""Whether the statements of the old text still do what they did, where no rule says otherwise."""

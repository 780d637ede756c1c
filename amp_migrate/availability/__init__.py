"""What depends on whether Apex is there, or is asked for: flags, guards, names that hold amp or None."""

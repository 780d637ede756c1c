"""Where functions may be run by code that is not seen."""

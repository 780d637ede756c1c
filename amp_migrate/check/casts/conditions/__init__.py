"""When Apex was on in a run, and what else may have been."""

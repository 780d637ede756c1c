"""What ran with Apex's casts runs under autocast."""

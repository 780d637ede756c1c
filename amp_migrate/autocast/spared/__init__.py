"""What O2 and O3 left in fp32, and autocast would multiply in fp16."""

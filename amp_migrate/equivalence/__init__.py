"""Run a training program before and after its migration and compare them step by step."""

"""What a generated program is written of, part by part."""

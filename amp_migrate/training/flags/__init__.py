"""The flags that tests ask, and what sets them."""

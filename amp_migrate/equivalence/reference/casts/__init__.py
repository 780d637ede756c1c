"""The patches of O1: which functions are cast, how, and the cache of cast weights."""

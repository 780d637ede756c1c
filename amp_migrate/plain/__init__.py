"""Apex spelt out: what reaches Apex by another name, a partial or unpacked arguments becomes a plain call of it.

The text that the planner reads has the same lines as the one that was given. Where the unit of a call is left in the
end, so is the call as it was.
"""

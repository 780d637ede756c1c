"""The interfaces that Apex had before today's amp, written as that: line by line, for the one planner and its check.

Nothing of the text is shown or kept: each of its lines becomes native code, or the file stays as it was.
"""

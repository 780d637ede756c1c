"""Which files belong to one program, and which of them matter to Apex code."""

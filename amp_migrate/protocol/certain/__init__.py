"""What native code certainly does against the protocol: unlike in the check, unknown means no here."""

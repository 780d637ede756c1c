"""Objects of one class that are told apart by the call that makes each, as far as containers of theirs go."""

"""Published values, and the rule that reproduces each."""

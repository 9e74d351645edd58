"""The theorem: what is accepted matches, and what is not diverges."""

"""Tables of formulas, claims and published values for papers."""

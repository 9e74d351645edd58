"""The space of placements: which is realisable, and what each costs.

In order: regimes, requirements, halves, space.
"""

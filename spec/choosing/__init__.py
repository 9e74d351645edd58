"""The space of placements: what each costs, and which is realisable.

In order: space, requirements, halves.
"""

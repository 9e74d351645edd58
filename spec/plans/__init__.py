"""What a user writes: modes, placements, named strategies, and products of them.

In order: modes, placement, strategies, model_strategies, compose.
"""

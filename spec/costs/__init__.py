"""What a step holds and sends.

In order: memory, communication, lifetimes, model_costs.
"""

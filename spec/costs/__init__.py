"""What a step holds and sends.

In order: owners, memory, communication, lifetimes, model_costs, views.
"""

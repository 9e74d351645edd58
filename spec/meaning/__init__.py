"""What a schedule and a program do, and what it is to match a single device.

In order: conditions, match, semantics, terms, reference.
"""

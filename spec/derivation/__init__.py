"""From a plan to its schedule and its programs.

In order: derive, distribute, nesting, norms, steps.
"""

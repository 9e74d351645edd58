"""From a plan to its schedule and its programs.

In order: derive, needs, distribute, nesting, norms, steps.
"""

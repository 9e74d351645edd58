"""From a plan to its schedule and its programs.

In order: derive, needs, distribute, two_parts, nesting, norms, steps.
"""

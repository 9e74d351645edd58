"""From a plan to its step (`derive`): a program of each part, a schedule of each group's states.

In order: schedules, needs, programs, two_parts, nesting, norms, steps.
"""

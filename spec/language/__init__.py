"""What a plan becomes: schedules of states, programs of models, lines of each.

In order: schedule, turns, moves, programs, steps.
"""

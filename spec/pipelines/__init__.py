"""Stages: orders of work, what runs where, and what is kept.

In order: dual_pipe, pipeline, idle_and_held, timeline, zero_bubble, dual_pipe_times, stages,
checkpoints.
"""

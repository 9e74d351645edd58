"""Stages: orders of work, what runs where, and what is kept.

In order: pipeline, timeline, zero_bubble, stages, checkpoints.
"""

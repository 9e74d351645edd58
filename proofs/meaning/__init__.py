"""Runs of training: the two conditions, and how sharp they are."""

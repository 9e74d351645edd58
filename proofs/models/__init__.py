"""Attention over blocks of keys."""

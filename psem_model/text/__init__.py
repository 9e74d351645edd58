"""Errors, numbers, files, progress and reports: how anything is said."""

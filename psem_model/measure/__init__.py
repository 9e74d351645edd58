"""Simulated runs beside predictions."""

"""Meshes, sharding and collectives."""

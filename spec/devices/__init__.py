"""Devices: their axes and groups, how values lie across them, and what moves them.

In order: mesh, layouts, collectives, operators, hierarchy.
"""

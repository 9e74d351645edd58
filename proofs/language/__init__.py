"""Layouts, the types of operations, and programs that follow from them."""

"""What a rule needs of its numbers: whole ones, roots, and sizes of which nothing is said.

In order: arithmetic, roots, any_size.
"""

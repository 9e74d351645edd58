"""Is a schedule right? Normal forms, and the verdict that compares them.

In order: words, algebra, forms, micro_steps, verdict, everywhere.
"""

"""Is a step right? The types and terms of its programs; the normal forms of its schedules, compared.

In order: symbols, algebra, forms, micro_steps, verdict, everywhere, programs, norms, steps.
"""

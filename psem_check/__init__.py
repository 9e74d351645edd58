"""A checker of certificates: it knows neither a solver nor the kernel that made the theorems.

Read in this order: `terms` (sorts and terms), `tree` (how a theorem follows from others, and what is
left to show for it), `proofs` (how a proof is gone through), `polynomials` and `forms` (when terms mean
the same), `cases` (what follows by connectives and equality), `reader` (files), `check`, `printing`. It
needs Python's standard library only.
"""

"""A checker of certificates: it knows neither a solver nor the kernel that made the theorems.

Read in this order: `terms` (sorts and terms), `values` (what closed terms are worth), `tree` (how a
theorem follows from others, and what is left to show for it), `obligations`, `proofs` (how a solver's
proof is gone through), the rules of proofs (`schemas`, `logic`, `equalities`, `arithmetic` with
`polynomials`), `products`, `reader` and `printing`. It needs Python's standard library only.
"""

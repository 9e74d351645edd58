"""Running the proofs, and auditing them: a second solver, hypotheses, counterexamples."""

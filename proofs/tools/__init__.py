"""What proofs share: finite sums, and the specification's modes as terms."""

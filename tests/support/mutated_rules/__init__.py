"""Each rule of spec/ changed in one place, and which claim or test notices: docs/MUTANTS.md."""

"""Questions for solvers."""

from __future__ import annotations

EASY = "(set-logic QF_LIA)(declare-fun x () Int)(assert (< x x))(check-sat)"

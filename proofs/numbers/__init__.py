"""Numbers: whole ones, roots, and sizes in general."""

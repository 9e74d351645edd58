"""Pages for a browser: the report on the claims, and that on a plan. One file each, no network."""

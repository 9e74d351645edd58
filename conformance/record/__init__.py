"""Recorders of PyTorch, in an environment of its own: nothing else imports them."""

"""Memory and communication."""

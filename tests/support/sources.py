"""Sources that are others."""

from psem_model.audit import sources


def of_sources(monkeypatch, hash_of):
    """As if the hash of packages were another, from the first."""
    for name in ("hash_of", "at_first"):
        monkeypatch.setattr(sources, name, hash_of)

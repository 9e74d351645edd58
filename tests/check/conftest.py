"""What is found of a file."""

from __future__ import annotations

import pytest

from psem_model.check.files import check_file


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What is found of a file of this text."""
    path = tmp_path_factory.mktemp("steps") / "step.toml"

    def check(text, **sizes):
        path.write_text(text)
        return check_file(str(path), None, None, None)

    return check

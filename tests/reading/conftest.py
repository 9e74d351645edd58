"""Shapes of published configurations with some fields changed."""

import json

import pytest

from psem_model.reading.configurations import read
from tests.support.configurations import published, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("configurations")


@pytest.fixture
def shape(folder):
    """shape("gpt2", n_layer=2) -> the shape of a published configuration with some fields changed.

    A field that becomes `...` is left out.
    """

    def of(name, **changed):
        fields = {k: v for k, v in (published(name) | changed).items() if v is not ...}
        return read(write(folder, json.dumps(fields))).model

    return of

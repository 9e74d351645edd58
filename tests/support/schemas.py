"""docs/schema/, read, and what checks documents by it."""

import json

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from proofs.registry import ROOT

SCHEMAS = {
    path.stem: json.loads(path.read_text()) for path in (ROOT / "docs" / "schema").glob("*.json")
}
REGISTRY = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)


def validator(command):
    """What checks what a command prints."""
    return Draft202012Validator(SCHEMAS[command], registry=REGISTRY)

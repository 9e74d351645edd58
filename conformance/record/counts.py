"""Record parameters as the reference implementations have them: python -m conformance.record.counts.

How many there are, and the rows of each: its first dimension, and elements of all others. And of how
many features of a head there are cosines, as queries and keys are turned.

Models are built without memory, from the packaged configurations, and from those of other sizes.
"""

from __future__ import annotations

import json
from collections import Counter

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from conformance.counts import FILE, ROWS, configurations

APART = ("model_type", "quantization_config", "auto_map")  # of stored weights, and of code of their own


def built(content):
    """The model that transformers makes of a configuration."""
    fields = {name: value for name, value in content.items() if name not in APART}
    config = AutoConfig.for_model(content["model_type"], **fields)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def turned(model):
    """How many columns cosines have: two for each frequency; 0 where nothing is turned."""
    found = {2 * b.numel() for name, b in model.named_buffers() if name.endswith("inv_freq")}
    return max(found, default=0)


def rows_of(parameters):
    """Rows, elements of a row, and how many parameters have these."""
    found = Counter((p.shape[0], p.numel() // p.shape[0]) for p in parameters)
    return sorted([*rows, times] for rows, times in found.items())


def main():
    transformers.logging.set_verbosity_error()
    found, columns = {}, {}
    for name, content in configurations().items():
        model = built(content)
        found[name], columns[name] = [*model.parameters()], turned(model)  # tied ones once
    counts = {name: sum(each.numel() for each in of) for name, of in found.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(rows_of(of))}" for name, of in found.items())
    ROWS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    told = {"transformers": transformers.__version__, "torch": torch.__version__, "counts": counts}
    told["turned"] = columns
    FILE.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

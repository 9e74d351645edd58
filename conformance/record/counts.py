"""Record how many parameters the reference implementations count: python -m conformance.record.counts.

Models are built without memory, from the packaged configurations, and from those of other sizes.
"""

from __future__ import annotations

import json

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from conformance.counts import FILE, configurations

APART = ("model_type", "quantization_config", "auto_map")  # of stored weights, and of code of their own


def counted(content):
    """Parameters of the model that transformers makes of a configuration, tied ones once."""
    fields = {name: value for name, value in content.items() if name not in APART}
    config = AutoConfig.for_model(content["model_type"], **fields)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(weight.numel() for weight in model.parameters())


def main():
    transformers.logging.set_verbosity_error()
    counts = {name: counted(content) for name, content in configurations().items()}
    told = {"transformers": transformers.__version__, "torch": torch.__version__, "counts": counts}
    FILE.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

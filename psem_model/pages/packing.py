"""What is large, in little room on a page: its script unpacks it where it is shown."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from typing import Any


def packed(found: Any) -> str:
    """What a browser unpacks: JSON, deflated, in base64."""
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    return b64encode(zlib.compress(data, 9)).decode()

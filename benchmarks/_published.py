"""Published tables that tests and benchmarks compare with; they are not part of this repository.

``NAS_EXT_DATA`` names the folder that holds them (default: ``../shared/data`` beside the repository).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nas_core.files import read_json
from nas_core.space import Architecture

DATA = Path(os.environ.get("NAS_EXT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RELEASED = DATA / "hat_released_architectures.json"
LATENCY_TABLES = DATA / "latency_hat_transformers.npz"
HAT_SPACES = {
    "wmt14ende": "hat_wmt14_en_de",
    "wmt14enfr": "hat_wmt14_en_fr",
    "wmt19ende": "hat_wmt19_en_de",
    "iwslt14deen": "hat_iwslt14_de_en",
}


def absent(path: Path) -> str | None:
    """Why what needs this file is skipped, or None if the file is there."""
    return None if path.exists() else f"{path} is absent; set NAS_EXT_DATA to the folder that holds it"


def released() -> list[tuple[dict[str, Any], Architecture]]:
    """HAT's released sub-transformers: each row with its published figures, and as an architecture."""
    found = []
    for row in read_json(RELEASED)["architectures"]:
        genes: dict[str, Any] = {"qkv_dim": 512, "encoder.layers": len(row["encoder"]["ffn_dims"])}
        for side in ("encoder", "decoder"):
            for key, value in row[side].items():
                genes[f"{side}.{'ffn_dim' if key == 'ffn_dims' else key}"] = value
        found.append((row, Architecture(genes)))
    return found

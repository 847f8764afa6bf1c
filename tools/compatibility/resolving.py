"""Which systems and Pythons the registry has wheels for, of all that nas-ext depends on; nothing is installed."""

from __future__ import annotations

import datetime
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.compatibility.environment import shortened
from tools.compatibility.matrix import CORE, EXTRAS, PLATFORMS, PYTHONS, wheels_of

__all__ = ["resolve"]


def resolve(uv: str, folder: Path, settings: dict[str, object]) -> dict[str, Any]:
    """For each system and Python, whether wheels alone suffice for the core, with which torch, and if not, why.

    On the first Python that is asked for each extra too. fairseq is left out, since it is compiled everywhere, and so
    is what else is source only (:data:`~tools.compatibility.matrix.SOURCE_ONLY`). The requirements that were asked for
    stand beside the answers.
    """
    found = []
    for system, platform in PLATFORMS.items():
        for python in PYTHONS:
            extras = [extra for extra in EXTRAS if extra != "fairseq"] if python == PYTHONS[0] else [CORE]
            # What has wheels together has them alone; only where something lacks one, each extra is asked.
            torch, error = _resolved(uv, folder, settings, extras, python, platform)
            for extra in extras:
                one = (torch, error) if error is None else _resolved(uv, folder, settings, (extra,), python, platform)
                found.append({"system": system, "python": python, "extra": extra, "torch": one[0], "error": one[1]})
    asked = {extra: wheels_of(settings, extra) for extra in EXTRAS if extra != "fairseq"}
    return {"date": datetime.date.today().isoformat(), "asked": asked, "rows": found}


def _resolved(
    uv: str, folder: Path, settings: dict[str, object], extras: Sequence[str], python: str, platform: str
) -> tuple[str | None, str | None]:
    """The version of torch, and why there is none."""
    asked = [one for extra in extras for one in wheels_of(settings, extra)]
    file = folder / "asked.txt"
    file.write_text("\n".join(dict.fromkeys(asked)))
    done = subprocess.run(
        [
            uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:",
            "--python-version", python, "--python-platform", platform, str(file),
        ],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    torch = re.search(r"^torch==(\S+)", done.stdout, re.MULTILINE)
    return torch[1] if torch else None, None if done.returncode == 0 else _why(done.stderr)


def _why(said: str) -> str:
    """What stands in the way, from what uv says over several lines."""
    told = " ".join(said.split())
    wanted = re.search(r"Because (.*?)(?:, we can conclude| and )", told)
    return shortened(wanted[1] if wanted else told)

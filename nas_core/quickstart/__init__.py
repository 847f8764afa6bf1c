"""Small runnable examples that ``nas-ext quickstart`` writes to a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from nas_core.errors import ConfigError
from nas_core.files.writing import os_errors, write_atomic
from nas_core.optional import require
from nas_core.registry import Registry


@dataclass(frozen=True)
class Quickstart:
    """Folder with data, a README and a script."""

    name: str
    purpose: str
    """One-line description of the script."""
    templates: str
    """Folder of the README, the script and further files, as ``package/folder``."""
    data: Callable[[], Mapping[str, str | bytes]] = dict
    """Function that returns relative path -> content of generated files; equal in each call."""
    script: str = "run.sh"
    """File name of the script; ``.py`` runs with Python, ``.sh`` with bash."""
    modules: tuple[str, ...] = ()
    """Modules that the script needs."""
    extra: str = ""
    """Extra of nas-ext that installs these modules; empty if none is needed."""
    minutes: float = 1.0
    """Run time of the script in minutes, on two slow cores."""

    @property
    def command(self) -> str:
        """Shell command that runs the script."""
        return f"{'bash' if self.script.endswith('.sh') else 'python'} {self.script}"

    def check(self) -> None:
        """Raise a MissingHostError if a module of the script is missing."""
        for module in self.modules:
            require(module, f"quickstart {self.name!r}", self.extra)

    def contents(self) -> dict[str, str | bytes]:
        """Return relative path -> content of all files."""
        package, *folders = self.templates.split("/")
        templates = sorted(files(package).joinpath(*folders).iterdir(), key=lambda file: file.name)
        return {**{file.name: file.read_bytes() for file in templates if file.is_file()}, **self.data()}

    def write(self, folder: str | Path, force: bool = False) -> list[Path]:
        """Write the folder and return the paths of its files.

        Args:
            force: also write into a folder that is not empty; files with other names are kept.

        Raises:
            MissingHostError: a module of the script is missing.
            ConfigError: the path is a file or a folder that is not empty.
        """
        self.check()
        target = Path(folder)
        if target.exists() and not target.is_dir():
            raise ConfigError(f"{target} is a file; give a new or empty folder")
        with os_errors("read", target):
            if target.is_dir() and not force and any(target.iterdir()):
                raise ConfigError(
                    f"{target} is not empty; give another folder, or --force to overwrite files with the same names"
                )
        contents = self.contents()
        for name, content in contents.items():
            write_atomic(target / name, content)
        return [target / name for name in contents]


LATENCY = Quickstart(
    "latency", "predict how long an ONNX file takes, with a model of networks measured on your machine",
    "nas_core/quickstart/templates/latency", modules=("onnx", "onnxruntime", "onnxscript"), extra="onnx",
)  # fmt: skip
PREDICTOR = Quickstart(  # tools/quickstart_cells.py writes its cells.jsonl
    "predictor", "rank untrained networks by accuracy, learned from networks that were trained",
    "nas_core/quickstart/templates/predictor", script="run.py",
)  # fmt: skip

# Modules of adapters import their framework, so their quickstarts are named here.
QUICKSTARTS: Registry[Quickstart] = Registry(
    "quickstart",
    "",
    {
        "predictor": f"{__name__}:PREDICTOR",
        "latency": f"{__name__}:LATENCY",
        "translation": "fairseq_ext.quickstart:TRANSLATION",
        "images": "timm_ext.quickstart:IMAGES",
        "encoder": "hf_ext.quickstart:ENCODER",
    },
    Quickstart,
)

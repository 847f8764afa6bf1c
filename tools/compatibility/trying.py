"""One environment tried: installed, checked, asked what it is, and used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.compatibility.environment import Environment, Failed, packages
from tools.compatibility.matrix import CORE, HOSTS, SOURCE_ONLY, Combination, requirements

__all__ = ["PROGRAMS", "WORKS", "doctor_is_wrong", "doctor_says", "to_try", "try_one"]

PROGRAMS = Path(__file__).parent / "programs"
ALL_HOSTS = ("fairseq", "timm", "nni", "naslib", "optuna", "onnx")
WORKS = "works"


def to_try(before: Mapping[str, Any] | None, settings: dict[str, object]) -> bool:
    """Whether an entry is missing, did not work, or is of another version of nas-ext or of other requirements."""
    if before is None or before["result"] != WORKS or before["nas_ext"] != settings["version"]:
        return True
    return bool(before["asked"] != requirements(settings, before["extra"]))


def try_one(
    one: Combination, folder: Path, uv: str, built: Mapping[str, Path], settings: dict[str, object]
) -> tuple[dict[str, Any], str]:
    """What came of a combination, as plain types, and what was said where it failed."""
    found: dict[str, Any] = {"result": WORKS, "packages": {}, "doctor": []}
    step, environment = "make", None
    try:
        environment = Environment(folder / "environment", uv, one.python)
        step = "install"
        _install(environment, one, built, settings)
        installed = environment.versions()
        found["packages"] = {
            name: installed[name] for name in packages(requirements(settings, one.extra)) if name in installed
        }
        step = "check"
        environment.check()
        step = "doctor"
        words = environment.run(["nas-ext", "doctor", "--import"])
        found["doctor"] = doctor_says(words)
        wrong = doctor_is_wrong(words, one)
        if wrong:
            raise Failed(["nas-ext", "doctor", "--import"], f"{words}\n{wrong}")
        step = "use"
        program = PROGRAMS / f"{one.extra}.py"
        if not program.is_file():  # what the extra brings needs a GPU: the rest has to work beside it
            program = PROGRAMS / f"{CORE}.py"
        environment.run([str(environment.python), "-P", str(program)])
    except Failed as error:
        found["result"] = f"{step}: {error.last}"
        return found, str(error)
    finally:
        if environment is not None:
            environment.delete()
    return found, ""


def _install(
    environment: Environment, one: Combination, built: Mapping[str, Path], settings: dict[str, object]
) -> None:
    asked = requirements(settings, one.extra)
    pins = environment.folder / "pins.txt"
    pins.write_text("")
    # Where something is source only, that nothing is compiled is held by a compiler that does not exist alone.
    wheels = [] if one.extra in SOURCE_ONLY or one.source == "sdist" else ["--only-binary", ":all:"]
    if one.versions == "lowest":
        known = [each for each in asked if packages([each])[0] not in SOURCE_ONLY.get(one.extra, ())]
        (environment.folder / "asked.txt").write_text("\n".join(known))
        environment.run(
            [
                environment.uv, "pip", "compile", "--quiet", "--resolution", "lowest-direct", *wheels,
                "--python", str(environment.python), "--output-file", str(pins), str(environment.folder / "asked.txt"),
            ]
        )  # fmt: skip
    target = f"nas-ext{'' if one.extra == CORE else f'[{one.extra}]'} @ {built[one.source].as_uri()}"
    if one.installer == "pip":
        environment.install_by_pip(target)
    elif one.extra == "fairseq":  # in the order of steps that `nas-ext doctor` tells
        core = f"nas-ext @ {built[one.source].as_uri()}"
        environment.install("-c", str(pins), core, "setuptools<81", "wheel", "cython", "numpy")
        environment.install("-c", str(pins), "--no-cache", "--no-build-isolation", target, compiler=True)
    else:
        environment.install("-c", str(pins), *wheels, target)


def doctor_says(words: str) -> list[str]:
    """The lines of ``nas-ext doctor --import`` about what is there, without the machine."""
    lines = [re.sub(r"\s{2,}", " ", line) for line in words.splitlines()]
    return [line for line in lines if line.startswith(("torch ", *ALL_HOSTS)) and not line.endswith("not installed")]


def doctor_is_wrong(words: str, one: Combination) -> str:
    """What ``nas-ext doctor --import`` says that is not so in that environment; empty where all is right."""
    lines = words.splitlines()
    its_own = any(re.match(rf"python +{re.escape(one.python)}\.", line) for line in lines)
    wrong = [] if its_own else ["its Python is another"]
    expected = {"torch", HOSTS.get(one.extra, "torch")}
    for name in ("torch", *ALL_HOSTS):
        at, line = next(((at, line) for at, line in enumerate(lines) if re.match(rf"{name} ", line)), (0, ""))
        told = line.removeprefix(name).strip()
        if name in expected and not re.match(
            r"\d+\.[^,]*(, torchvision is a CUDA build beside a CPU torch: .*)?$", told
        ):
            wrong.append(f"{name} is installed")
        if name not in expected and not (
            told == "not installed" and lines[at + 1].strip().startswith("-> pip install")
        ):
            wrong.append(f"{name} is not installed")
    return "; ".join(wrong) and f"nas-ext doctor is wrong: {'; '.join(wrong)}"

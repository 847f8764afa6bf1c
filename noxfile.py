"""Sessions in empty environments: ``nox`` runs all of them, ``nox -s "extra(newest, timm)"`` one.

Each installs this project with one extra, asks ``nas-ext doctor --import`` what is there, and runs a small program that
uses it. They need uv, nox and other interpreters; ``make test`` needs none of this.
"""

import nox

nox.options.default_venv_backend = "uv"
EXTRAS = ("core", "timm", "hf", "nni", "onnx", "optuna", "dashboard", "submitit", "naslib", "fairseq")


@nox.session(python=["3.11"])
@nox.parametrize("extra", EXTRAS)
@nox.parametrize("versions", ["newest", "lowest"])
def extra(session: nox.Session, versions: str, extra: str) -> None:
    """Install one extra in its newest or its lowest versions, and use it."""
    _use(session, extra, ["--resolution", "lowest-direct"] if versions == "lowest" else [])


@nox.session(python=["3.12", "3.13"])
def core(session: nox.Session) -> None:
    """Install the project without extras on a newer Python, and use it."""
    _use(session, "core", [])


def _use(session: nox.Session, extra: str, options: list[str]) -> None:
    if extra == "fairseq":  # it is compiled against the torch that it finds
        session.install(".", "setuptools<81", "wheel", "cython", "numpy", *options)
        options = [*options, "--no-build-isolation"]
    session.install("." if extra == "core" else f".[{extra}]", *options)
    session.run("nas-ext", "doctor", "--import")
    session.run("python", "-P", f"tests/compatibility/{extra}.py")

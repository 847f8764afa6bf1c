"""The dashboard starts and says how it is called."""

import subprocess

subprocess.run(["optuna-dashboard", "--help"], check=True)

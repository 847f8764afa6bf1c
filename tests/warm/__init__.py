"""Programs that start at once: each is a fork of a Python that has imported the heavy libraries already."""

from tests.warm.programs import COLD, THREADS, python, wait_until_warm, warm

__all__ = ["COLD", "THREADS", "python", "wait_until_warm", "warm"]

"""Tests of the tests: small faults are put into central files of the core, and the tests of each file must notice.

``python -m tools.mutants`` runs mutmut over the files of ``[tool.nas-ext.mutants]`` in ``pyproject.toml``, one after
the other, each against its own tests alone, in a folder of its own under ``build/mutants`` (so that an interrupted run
goes on, and no file of the checkout is touched). ``settings`` reads the table, ``plan`` lists a file's mutants,
``tester`` runs mutmut, ``verdict`` compares what survived with ``accepted.yaml``.
"""

"""A package, so that another project's ``tests`` on ``PYTHONPATH`` (NASLib has one) does not take its place."""

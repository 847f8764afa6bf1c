"""Recipes: YAML files with the commands of a paper's experiment."""

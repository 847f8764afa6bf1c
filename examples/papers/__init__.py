"""The papers' settings as files: one YAML per paper and data set, whose steps are commands you could type yourself."""

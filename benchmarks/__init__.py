"""Speed and quality against references; each module writes ``results/<its name>.json``."""

"""Speed and quality against references, by subject; each module writes ``results/<its name>.json``."""

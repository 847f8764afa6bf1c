"""``python -m examples.demo``: the demo."""

import sys

from examples.demo.demo import main

if __name__ == "__main__":
    sys.exit(main())

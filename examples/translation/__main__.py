"""``python -m examples.translation``: the demo."""

import sys

from examples.translation.demo import main

if __name__ == "__main__":
    sys.exit(main())

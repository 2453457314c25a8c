"""``python -m benchmarks.corpus``. The command is in a module of its own, as processes are spawned from it."""

import sys

from benchmarks.corpus.command import main

if __name__ == "__main__":
    sys.exit(main())

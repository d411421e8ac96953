"""`python -m tidelog.worlds.simulator`: see run.py."""

from __future__ import annotations

import sys

from tidelog.worlds.simulator.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

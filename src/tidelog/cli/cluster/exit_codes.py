"""How a verb about a local cluster ends: one line on standard error, exit code 0, 1 or 2.

Loads nothing that only people need, because `tidelog up` must be quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tidelog.cluster.errors import ClusterError, ClusterUsageError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130
DATA_VARIABLE = "TIDELOG_DATA"
DEFAULT_DATA = "tidelog-data"


def run(name: str, action: Callable[[], int]) -> int:
    """The exit code of whatever the verb does."""
    try:
        code = action()
        sys.stdout.flush()
    except ClusterUsageError as error:
        return _complain(name, str(error), MISUSED)
    except ClusterError as error:
        return _complain(name, str(error), FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a directory of somebody else
        where = "" if error.filename is None else f"{error.filename}: "
        return _complain(name, f"{where}{error.strerror or error}", FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def data_option(data: Path) -> str:
    """What must be added to a command for this data directory; nothing where it goes unsaid."""
    usual = Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)
    if data.absolute() == usual.absolute():
        return ""
    import shlex

    return f" --data {shlex.quote(str(data))}"


def _complain(name: str, text: str, code: int) -> int:
    sys.stdout.flush()
    print(f"tidelog {name}: {' '.join(text.split())}", file=sys.stderr)
    return code

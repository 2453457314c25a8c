"""The command where some packages cannot be imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def run_without(packages: Sequence[str], arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run it; it must succeed."""
    code = (
        "import sys\n"
        f"for name in {packages!r}:\n    sys.modules[name] = None\n"
        "from planner.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run

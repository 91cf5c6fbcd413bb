"""`python -m geomill.cli.child COMMAND…`: runs a command that exits when its supervisor dies.

The supervisor holds the other end of standard input. When it dies, even by `kill -9`, this process reads an end of
file.
"""

from __future__ import annotations

import os
import signal
import threading
import time

from geomill.cli.main import run

GRACE_SECONDS = 40.0


def main() -> None:
    threading.Thread(target=_exit_with_supervisor, name="supervisor", daemon=True).start()
    run()


def _exit_with_supervisor() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()

"""Run a command, and end it with SIGTERM once standard input ends.

The pipe at standard input ends with the process that holds its other end, however that process ends. A run
that nobody reads any more spends no money. SIGTERM is passed on.
"""

import os
import signal
import subprocess
import sys
import threading


def main() -> None:
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    def watch() -> None:
        os.read(0, 1)
        child.terminate()

    threading.Thread(target=watch, daemon=True).start()
    code = child.wait()
    os._exit(code if code >= 0 else 128 - code)  # the thread still reads


if __name__ == "__main__":
    main()

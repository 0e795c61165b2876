"""The command: python -m headrace, and the console script headrace."""

import os
import subprocess
import sys

from headrace import _BINARY


def main() -> None:
    args = ["headrace", *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(args, executable=_BINARY))
    os.execv(_BINARY, args)


if __name__ == "__main__":
    main()

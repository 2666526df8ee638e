"""The import path and the answer to Ctrl-C, set here alone.

A script or test starts with `import paths`. Python looks for it in the folder of the file it was
given, so each folder with files to run holds a link to this one.
"""

import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("model", "model/beyond", "model/tests", "tools", "tools/lib", "tools/beyond",
         "tools/tests")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(number, frame):
    """Ctrl-C, `kill` and a closed terminal: KeyboardInterrupt, which ends what was started.

    While importing nothing was started, and Python loses some exceptions: end at once instead.
    """
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"interrupted\n")
            os._exit(128 + number)
        frame = frame.f_back
    raise KeyboardInterrupt(number)


for _number in ENDING:
    if signal.getsignal(_number) != signal.SIG_IGN:  # as nohup has it
        signal.signal(_number, interrupt)

sys.path[1:1] = [str(ROOT / room) for room in ROOMS if str(ROOT / room) not in sys.path]

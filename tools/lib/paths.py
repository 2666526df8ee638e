"""The import path, set here alone: every room of the project, so that imports stay plain.

A script or test starts with `import paths`. Python looks for it in the folder of the file it was
given, so each folder with files to run holds a link to this one.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("model", "model/beyond", "model/tests", "tools", "tools/lib", "tools/beyond",
         "tools/tests")

sys.path[1:1] = [str(ROOT / room) for room in ROOMS if str(ROOT / room) not in sys.path]

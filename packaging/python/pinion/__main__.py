"""Runs the pinion binary in place of this process."""

import os
import sys

from pinion import find_pinion

path = find_pinion()
os.execv(path, [path, *sys.argv[1:]])

"""The pinion binary as a Python package: ``find_pinion()`` returns its path, ``python -m pinion`` runs it."""

import os
import shutil
import sysconfig

__all__ = ["find_pinion"]


def find_pinion() -> str:
    """Returns the path of the pinion binary: PINION_BINARY, the one of this package, else the one on the PATH."""
    named = os.environ.get("PINION_BINARY")
    if named:
        return named
    schemes = [sysconfig.get_default_scheme(), f"{os.name}_user"]
    for scheme in schemes:
        path = os.path.join(sysconfig.get_path("scripts", scheme), "pinion")
        if os.path.isfile(path):
            return path
    path = shutil.which("pinion")
    if path is None:
        raise FileNotFoundError("the pinion binary was not found; install the package again")
    return path

"""Builds the wheel: the binary among the scripts, a module that finds it, and checksums. Equal input gives equal bytes.

Usage: build_wheel.py BINARY VERSION TAG README OUTPUT_DIRECTORY
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

binary, version, tag, readme, output = sys.argv[1:]
here = pathlib.Path(__file__).parent
info = f"pinion-{version}.dist-info"
metadata = f"""Metadata-Version: 2.1
Name: pinion
Version: {version}
Summary: Runs coding agents for other programs
License: Apache-2.0 OR MIT
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{pathlib.Path(readme).read_text()}"""
wheel = f"Wheel-Version: 1.0\nGenerator: pinion\nRoot-Is-Purelib: false\nTag: {tag}\n"
files = {f"pinion/{file.name}": file.read_bytes() for file in sorted((here / "pinion").iterdir()) if file.is_file()}
files[f"pinion-{version}.data/scripts/pinion"] = pathlib.Path(binary).read_bytes()
files[f"{info}/METADATA"] = metadata.encode()
files[f"{info}/WHEEL"] = wheel.encode()
record = ""
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(content)}\n"
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
path = pathlib.Path(output) / f"pinion-{version}-{tag}.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        archive.writestr(entry, content)
print(path)

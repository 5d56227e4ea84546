#!/usr/bin/env bash
# langgraph-checkpoint 4.3.2 (PyPI)
#
# Behaviour: EncryptedSerializer.from_pycryptodome_aes needs the package pycryptodome, which langgraph-checkpoint neither requires nor
# offers as an extra. Without it the call raises ImportError.
#
# Why it matters: one would guess that a serializer in the package works once the package is installed, or that an extra brings what it
# lacks. A deployment that turns encryption on by a setting (LANGGRAPH_AES_KEY) fails where it starts, if its image was built by the
# requirements of the package.
#
# Output:
#   extras: none
#   from_pycryptodome_aes: ImportError
#   with pycryptodome: EncryptedSerializer
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph-checkpoint==4.3.2
cat > "$dir/run.py" <<'END'
from importlib.metadata import metadata

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer


def made():
    try:
        return type(EncryptedSerializer.from_pycryptodome_aes(key=b"0" * 32)).__name__
    except ImportError:
        return "ImportError"


print("extras:", ", ".join(metadata("langgraph-checkpoint").get_all("Provides-Extra") or ["none"]))
print("from_pycryptodome_aes:", made())
END
"$dir/venv/bin/python" "$dir/run.py" | tee "$dir/first"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check pycryptodome==3.23.0
"$dir/venv/bin/python" "$dir/run.py" | sed -n 's/^from_pycryptodome_aes/with pycryptodome/p' | tee "$dir/second"
diff "$dir/first" <(printf 'extras: none\nfrom_pycryptodome_aes: ImportError\n')
diff "$dir/second" <(echo "with pycryptodome: EncryptedSerializer")

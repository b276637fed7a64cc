"""Write the golden files anew: `python -m tests.goldens.write formats|commands`.

They change only on purpose, and the commit that changes one says why.
"""

import os
import sys
import tempfile


def main(kinds: list[str]) -> None:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()  # not the profiles and replies of whoever writes them
    for kind in kinds or ["formats", "commands"]:
        if kind == "formats":
            from tests.conftest import RECORDINGS
            from tests.goldens import formats

            formats.write(RECORDINGS)
        elif kind == "commands":
            from tests.goldens import commands

            commands.write()
        else:
            raise SystemExit(f"no goldens of {kind!r}: formats or commands")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Named moments of writing at which a test lets the process die, or the disk refuse.

`COUNTERPLAY_FAILPOINT="file synced:3:kill"` kills the process the third time it reaches that moment; `full` and
`read-only` let the disk refuse from then on.
"""

import errno
import os
import signal
from collections import Counter

VARIABLE = "COUNTERPLAY_FAILPOINT"

MOMENTS = {
    "file opened": "the temporary file is empty",
    "file written": "its bytes are written, but may not be on the disk",
    "file synced": "they are on the disk, under the temporary name",
    "file renamed": "the file has its name, which may not be on the disk",
    "folder made": "the temporary folder is empty",
    "folder filled": "all its files are written, but for the manifest",
    "folder listed": "its manifest is written",
    "folder renamed": "the folder has its name, which may not be on the disk",
    "unit finished": "a best response is trained, and nothing of it written",
    "iteration finished": "an iteration is measured, and nothing of it written",
    "run finished": "all is measured and written, but for summary and figures",
}

REFUSALS = {"full": errno.ENOSPC, "read-only": errno.EROFS}

reached: Counter[str] = Counter()
"""How often each moment has been reached by this process."""


def failpoint(moment: str) -> None:
    """Say that this moment is reached; fail where a test wants it to."""
    assert moment in MOMENTS, moment
    reached[moment] += 1
    wanted, _, rest = os.environ.get(VARIABLE, "").partition(":")
    if wanted != moment:
        return
    count, _, action = rest.partition(":")
    if action == "kill" and reached[moment] == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
    if action in REFUSALS and reached[moment] >= int(count):
        raise OSError(REFUSALS[action], os.strerror(REFUSALS[action]))

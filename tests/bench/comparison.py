"""What the comparisons with peers share: running a program for its figures, finding the peers."""
import json
import os
import subprocess
import tempfile


def run(command, cwd=None, environment=None):
    """The JSON object in the last line that `command` prints and what the process took, {"wall": s,
    "cpu": s, "mib": its peak}; or None and why."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = os.times().elapsed
        child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 env={**os.environ, **(environment or {})})
        _, status, used = os.wait4(child.pid, 0)
        wall = os.times().elapsed - began
        out.seek(0), err.seek(0)
        if status:
            return None, (err.read().strip().splitlines() or [f"ended with status {status}"])[-1]
        return (json.loads(out.read().splitlines()[-1]),
                {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024})


def interpreter():
    """The Python that has the peers, MILLRACE_PEERS_PYTHON; "" where none is named."""
    return os.environ.get("MILLRACE_PEERS_PYTHON", "")


def photos():
    """COCO photos of MILLRACE_TEST_DATA (default ../shared/data)."""
    return os.path.abspath(os.path.join(os.environ.get("MILLRACE_TEST_DATA", "../shared/data"),
                                        "coco_mini"))


def peers_folder(script):
    """The folder of a peer's script, MILLRACE_PEERS (default ../shared/peers); None, and a word,
    where it cannot be run.
    """
    folder = os.path.abspath(os.environ.get("MILLRACE_PEERS", "../shared/peers"))
    if interpreter() and os.path.exists(os.path.join(folder, script)):
        return folder
    print(f"the peers are left out: set MILLRACE_PEERS to the folder of {script} "
          "and MILLRACE_PEERS_PYTHON to an "
          "interpreter that has them")
    return None

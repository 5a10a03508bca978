"""The memory of this process and its child processes."""
import os
import threading
import time


def now():
    """Returns the current MiB; pages that processes share count once. Takes a millisecond."""
    total, todo = 0, [os.getpid()]
    for pid in todo:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as lines:
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    todo += map(int, children.read().split())
        except (OSError, StopIteration):
            continue  # it has ended
    return total / 1024


class Peak(threading.Thread):
    """The peak memory, sampled every `every` seconds from now on."""

    def __init__(self, every):
        super().__init__(daemon=True)
        self.every, self.mib = every, 0
        self.start()

    def look(self):
        self.mib = max(self.mib, now())
        return self.mib

    def run(self):
        while True:
            self.look()
            time.sleep(self.every)

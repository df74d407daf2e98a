"""A night end to end through Dagster: wall time and peak memory against the limits.

Simulates one day of 17,000 sessions of about 25 KB (limit 60 s, 2 GB), and one of 2,000 sessions of
about 470 KB (limit 45 s, 1 GB), each in a new home, and runs the job ``nightly`` on it. Memory is the
sum over the process and its workers of what is resident, a page that several share counted once
(proportional set size), sampled five times a second.

    python benchmarks/night.py [simulated|realistic]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path

NIGHTS = {
    "simulated": ("demo", 17_000, 60.0, 2_000),
    "realistic": ("real", 2_000, 45.0, 1_000),
}
DAY = date(2026, 1, 5)

CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
from datetime import date
from pathlib import Path
from evalpipe import settings
from evalpipe.orchestration.runner import open_runner
with open_runner(settings.load(home=Path(sys.argv[1]))) as runner:
    outcome = runner.nightly(date.fromisoformat(sys.argv[2]), [Path(p) for p in sys.argv[3:]])
    sys.exit(0 if outcome.is_success else str(outcome))
"""


def resident_mb(pid: int) -> float:
    """Resident memory of a process and its descendants, shared pages counted once."""
    total, todo = 0, [pid]
    while todo:
        now = todo.pop()
        try:
            rollup = Path(f"/proc/{now}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024
            for task in Path(f"/proc/{now}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return total / 1e6


def run(name: str, folder: Path) -> None:
    from evalpipe.simulate import Spec, simulate

    profile, sessions, limit_s, limit_mb = NIGHTS[name]
    logs = folder / "logs"
    simulate(logs, Spec(sessions=sessions, days=1, start=DAY, profile=profile, late=False))  # type: ignore[arg-type]
    paths = sorted(path for path in logs.iterdir() if path.is_dir())
    size = sum(p.stat().st_size for path in paths for p in path.rglob("*") if p.is_file()) / 1e6
    peak = 0.0
    begun = time.monotonic()
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder / "home"), DAY.isoformat(), *map(str, paths)])

    def watch() -> None:
        nonlocal peak
        while child.poll() is None:
            peak = max(peak, resident_mb(child.pid))
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    child.wait()
    watcher.join()
    seconds = time.monotonic() - begun
    if child.returncode:
        sys.exit(f"the {name} night failed")
    print(
        f"{name} night: {sessions:,} sessions, {size:,.0f} MB: {seconds:.1f} s ({seconds / limit_s:.2f} of the limit "
        f"of {limit_s:.0f} s), {size / seconds:.1f} MB/s, peak {peak:,.0f} MB ({peak / limit_mb:.2f} of {limit_mb:,} MB)"
    )
    if name == "realistic":
        print(f"  at this rate 17,000 such sessions ({size * 8.5 / 1000:.1f} GB) take {seconds * 8.5 / 60:.1f} min")


def main() -> None:
    for name in sys.argv[1:] or list(NIGHTS):
        folder = Path(tempfile.mkdtemp(prefix="evalpipe-night-"))
        try:
            run(name, folder)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()

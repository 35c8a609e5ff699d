#!/usr/bin/env python3
"""The main job: the same training on two ranks, once for each way to exchange gradients.

Usage: run.py [--short] [--link LINK] [--codec CODEC]... [--steps N] [--out FOLDER]

Writes FOLDER/report.json and FOLDER/report.html (default out/demo). Exit status: 0 all runs ended
well and all replicas are identical, 1 not, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import launcher
import report
from settings import CODECS, DEBIAN_FOLDER, SHORT_STEPS, STEPS

ROOT = Path(__file__).resolve().parent.parent.parent


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": version_of("torch"),
        "gradwire": version_of("gradwire"),
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains on two ranks with each codec.")
    parser.add_argument("--short", action="store_true", help=f"{SHORT_STEPS} steps, for CI")
    parser.add_argument(
        "--link",
        default="auto",
        help="1gbit, 10gbit or another rate of tc; none: namespaces without a limit; loopback; "
        "auto (default): 1gbit, or loopback where namespaces may not be made",
    )
    parser.add_argument(
        "--codec", action="append", choices=CODECS, help="only this one (may be repeated)"
    )
    parser.add_argument("--steps", type=int, help=f"steps of each run (default {STEPS})")
    parser.add_argument("--data", type=Path, default=DEBIAN_FOLDER, help="folder of Fashion-MNIST")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo")
    parser.add_argument("--timeout", type=float, default=240, help="seconds of a run at most")
    arguments = parser.parse_args()
    if arguments.steps is None:
        arguments.steps = SHORT_STEPS if arguments.short else STEPS
    if arguments.steps < SHORT_STEPS:
        parser.error(f"--steps {arguments.steps}: must be {SHORT_STEPS} or more")
    return arguments


def run_all(arguments: argparse.Namespace) -> dict[str, Any]:
    link = launcher.choose_link(arguments.link)
    print(f"demo: two ranks, {arguments.steps} steps for each codec; link: {link.description}")
    if not arguments.data.is_dir():
        print("demo: scikit-learn's digits: no Fashion-MNIST here (Debian: dataset-fashion-mnist)")
    options = ["--steps", str(arguments.steps), "--data", str(arguments.data)]
    if arguments.short:
        options.append("--short")
    codecs = [codec for codec in CODECS if not arguments.codec or codec in arguments.codec]
    start = time.monotonic()
    runs = []
    for number, codec in enumerate(codecs, 1):
        title = f"run {number} of {len(codecs)}: {codec}"
        named = ["--title", title, *options]
        runs.append(launcher.run_codec(link, codec, named, arguments.out, arguments.timeout))
    shared = {name: [run.pop(name) for run in runs][0] for name in ("dataset", "parameters")}
    return {
        "link": link.name,
        "link_description": link.description,
        **shared,
        "ranks": 2,
        "seconds": time.monotonic() - start,
        "machine": machine(),
        "runs": runs,
    }


def main() -> int:
    arguments = parse_arguments()
    launcher.end_on_signals()
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        content = run_all(arguments)
    except launcher.RunFailed as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    paths = report.write(content, arguments.out)
    print(f"\n{report.text_table(content)}\n")
    print(f"demo: {content['seconds']:.0f} s; report: {' and '.join(map(str, paths))}")
    different = [run["codec"] for run in content["runs"] if not run["replicas_identical"]]
    if different:
        print(f"demo: replicas differ after {', '.join(different)}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

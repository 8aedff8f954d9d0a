"""Runs the suites that openai and anthropic publish with their sources, bare and hedged, and compares test by test.

    python run.py FOLDER     # where the source packages and the reports go; `make conformance`

Fails if an outcome differs without a reason in differences.toml, if a reason there is of no use any more, or if less than 80 % of
the calls went through a Hedger. Calls of tests that mock the transport itself are listed apart and are not counted in that share;
their outcomes are compared like all others.
"""

import fnmatch
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PINS = HERE.parents[1] / "constraints.txt"
SUITES = tomllib.loads((HERE / "suites.toml").read_text())
LEAST_SHARE = 0.8
PATIENCE_S = 60.0
ONE_RUN_S = 270.0  # two runs one after the other, both SDKs side by side: less than ten minutes


def source_of(sdk: str, folder: Path) -> Path:
    """The unpacked source package of the pinned version."""
    (version,) = re.findall(rf"^{sdk}==(\S+)$", PINS.read_text(), re.MULTILINE)
    unpacked = folder / f"{sdk}-{version}"
    if not unpacked.is_dir():
        fetch = ["pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
        subprocess.run([sys.executable, "-m", *fetch, "--dest", str(folder), f"{sdk}=={version}"], check=True)
        with tarfile.open(folder / f"{sdk}-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    if not (unpacked / "tests").is_dir():
        sys.exit(f"{unpacked.name}: its source package has no tests any more")
    return unpacked


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def run(sdk: str, source: Path, how: str, port: int) -> dict[str, Any]:
    """One run of one suite; what the plugin has written down."""
    report = source.parent / f"{sdk}-{how}.json"
    report.unlink(missing_ok=True)
    # anthropic's suite renames httpx before anything imports it, so before our plugin.
    options = ["-p", "tests._alias_httpx"] if (source / "tests" / "_alias_httpx.py").exists() else []
    options += [
        "-o",
        "addopts=",
        "-o",
        "hedgerow_loopback_only=true",
        "-p",
        "hedged_plugin",
        "-q",
        "--tb=no",
        "--timeout=60",
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HERE), str(source)]),
        "HEDGEROW_CONFORMANCE": how,
        "HEDGEROW_CONFORMANCE_SDK": sdk,
        "HEDGEROW_CONFORMANCE_REPORT": str(report),
        "TEST_API_BASE_URL": f"http://127.0.0.1:{port}",
    }
    for name in [each for each in environment if each.lower().endswith("_proxy") or each.startswith(sdk.upper())]:
        del environment[name]
    log = report.with_suffix(".log")
    with log.open("w") as said:
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *SUITES[sdk]["tests"]],
            cwd=source,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=ONE_RUN_S,
            check=False,
        )
    if not report.exists():
        sys.exit(f"{sdk}, {how}: pytest wrote no report; see {log}")
    return json.loads(report.read_text())


def both(sdk: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The suite bare, then hedged, against one stand-in."""
    source, port = source_of(sdk, folder), free_port()
    command = [sys.executable, str(HERE / "stand_in.py"), sdk, str(port)]
    log = (folder / f"{sdk}-stand-in.log").open("w")
    with log, subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as server:
        try:
            _await(f"http://127.0.0.1:{port}/_stand_in/health", server)
            return run(sdk, source, "bare", port), run(sdk, source, "hedged", port)
        finally:
            server.terminate()


def _await(url: str, server: "subprocess.Popen[bytes]") -> None:
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            ask.open(url, timeout=PATIENCE_S).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > give_up_s:
                sys.exit("the stand-in did not start")
            time.sleep(0.1)


def compared(sdk: str, bare: dict[str, Any], hedged: dict[str, Any], reasons: list[dict[str, Any]]) -> list[str]:
    """Prints the figures of one SDK; what is wrong."""
    wrong: list[str] = []
    for name, found in (("bare", bare), ("hedged", hedged)):
        outcomes = Counter(test["outcome"] for test in found["tests"].values())
        print(f"{sdk:9} {name:6} {dict(sorted(outcomes.items()))}")
    counted = [test for test in hedged["tests"].values() if not test["mocked"]]
    calls, ours = sum(test["calls"] for test in counted), sum(test["hedged"] for test in counted)
    mocked = [name for name, test in hedged["tests"].items() if test["mocked"]]
    share = ours / calls if calls else 0.0
    print(f"{sdk:9} calls of tests that reach a server: {calls}, through a Hedger: {ours} ({share:.1%})")
    print(f"{sdk:9} by the Hedgers' own count, mocked transports included: {hedged['through_hedgers']}")
    print(f"{sdk:9} their plans: {dict(sorted(hedged['plans'].items(), key=lambda each: -each[1]))}")
    print(f"{sdk:9} tests that mock the transport, not counted in the share: {len(mocked)} ({sdk}-mocked.txt)")
    for why, times in Counter(hedged["refused"]).most_common():
        print(f"{sdk:9} {times} × left bare: {why}")
    if share < LEAST_SHARE:
        wrong.append(f"{sdk}: {share:.1%} of the calls went through a Hedger, less than {LEAST_SHARE:.0%}")
    used: set[int] = set()
    for test in sorted(bare["tests"].keys() | hedged["tests"].keys()):
        one, other = (found["tests"].get(test, {"outcome": "missing"})["outcome"] for found in (bare, hedged))
        if one == other:
            continue
        why = hedged["tests"].get(test, {}).get("why", "").strip()
        place = next((n for n, each in enumerate(reasons) if _covers(each, sdk, test, why)), None)
        if place is None:
            wrong.append(f"{sdk}: {test}: bare {one}, hedged {other}: {why[-300:]}")
        else:
            used.add(place)
    wrong += [
        f"{sdk}: no test differs any more for this reason, take it out: {each['tests']}"
        for n, each in enumerate(reasons)
        if each["sdk"] == sdk and n not in used
    ]
    return wrong


def _covers(reason: dict[str, Any], sdk: str, test: str, why: str) -> bool:
    # fnmatch's brackets are a set of characters; here they are pytest's.
    patterns = (pattern.replace("[", "[[]") for pattern in reason["tests"])
    said = any(text in why for text in reason["says"])
    return said and reason["sdk"] == sdk and any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    reasons = tomllib.loads((HERE / "differences.toml").read_text()).get("difference", [])
    with ThreadPoolExecutor(len(SUITES)) as side_by_side:
        results = list(side_by_side.map(lambda sdk: both(sdk, folder), SUITES))
    wrong: list[str] = []
    for sdk, (bare, hedged) in zip(SUITES, results, strict=True):
        mocked = [name for name, test in hedged["tests"].items() if test["mocked"]]
        (folder / f"{sdk}-mocked.txt").write_text("\n".join(mocked) + "\n")
        wrong += compared(sdk, bare, hedged, reasons)
    print(*wrong, sep="\n")
    print(f"reports: {folder}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

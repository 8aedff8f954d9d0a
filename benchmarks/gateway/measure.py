"""Measures `hedgerow serve` beside other gateways on one core each, and writes docs/reference/gateway-figures.md.

python benchmarks/gateway/measure.py [--rounds 5] [--seconds 3] [--only hedgerow nginx] [--homes FOLDER] [--out FILE]

It takes turns: every round measures each of them under each load. What cannot be installed or does not answer is named as such.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from loopback import Driver, Load, Started, free_port
from page import Figures, page
from peers import PEERS, Peer, Ready, port_in

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("HEDGEROW_SHARED", ROOT.parent / "shared"))
USUAL_OUT = ROOT / "docs" / "reference" / "gateway-figures.md"
GATEWAY_CORE, TOOLS_CORE = 0, 1
WARM_UP_S = "2"
JSON, STREAMS, PACED, TIMES = "requests", "frames", "paced", "times"
SLOW_RATE, RATE = 20, 100
FEW_PER_S = 150  # who answers fewer than this in a closed loop is asked 20 times a second, not 100


@dataclass(slots=True)
class Contender:
    """One that runs. figures: of each load, a dict for each round."""

    name: str
    ready: Ready
    port: int
    process: Started | None
    figures: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    memory_mib: float | None = None

    def rates(self) -> int:
        """How often a second it is asked when times are measured."""
        done = [each["rps"] for each in self.figures.get(JSON, ())]
        return RATE if not done or median(done) >= FEW_PER_S else SLOW_RATE


def main() -> None:
    """Reads the options, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved; medians are printed")
    parser.add_argument("--seconds", type=int, default=3, help="of each load in each round")
    parser.add_argument("--only", nargs="+", help="names, or their beginnings")
    parser.add_argument(
        "--homes", type=Path, help="where peers are installed and kept; default: installed for this run"
    )
    parser.add_argument("--out", type=Path, default=USUAL_OUT)
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds < 1:
        parser.error("--rounds and --seconds must be 1 or more")
    chosen = [peer for peer in PEERS if not options.only or peer.name.startswith(tuple(options.only))]
    with tempfile.TemporaryDirectory(prefix="hedgerow-gateway-") as name, ExitStack() as running:
        folder = Path(name)
        homes = (options.homes or folder / "homes").resolve()
        driver = Driver(SHARED / "bench", folder, TOOLS_CORE)
        upstream = free_port()
        running.enter_context(driver.upstream(upstream)).await_port(upstream)
        direct = Contender("no gateway", Ready(command=[], port=upstream), upstream, None)
        contenders, missing = [direct], dict[str, str]()
        for peer in chosen:
            try:
                contenders.append(started(peer, homes, folder, upstream, running))
                check(driver, contenders[-1])
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                contenders = [each for each in contenders if each.name != peer.name]
                missing[peer.name] = said(error)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            one_round(driver, contenders, options.seconds)
        for contender in contenders:
            contender.memory_mib = contender.process.resident_mib() if contender.process else None
    text = page([figures_of(each, direct) for each in contenders], missing, options.rounds, options.seconds)
    options.out.write_text(text)
    print(text)


def started(peer: Peer, homes: Path, folder: Path, upstream: int, running: ExitStack) -> Contender:
    """Installed, if it is not there yet, and listening. A home is whole when its mark is there."""
    home, own = homes / peer.name.split(",")[0].lower(), folder / peer.name.split(",")[0].lower()
    if not (home / "installed").exists():
        print(f"installing {peer.name}", file=sys.stderr, flush=True)
        home.mkdir(parents=True, exist_ok=True)
        peer.install(home)
        (home / "installed").touch()
    own.mkdir()
    ready = peer.prepare(home, own, upstream, SHARED / "bench")
    log = own / "log"
    process = running.enter_context(Started(ready.command, core=GATEWAY_CORE, folder=own, log=log, env=ready.env))
    port = port_in(log) if ready.port is None else ready.port
    process.await_port(port)
    return Contender(peer.name, ready, port, process)


def check(driver: Driver, contender: Contender) -> None:
    """It answers; this also warms it up."""
    load = Load(mode="json", words=("8", WARM_UP_S), asks="b-20-0-0")
    found = driver.run(load, contender.port, contender.ready.path, contender.ready.model, contender.ready.header)
    if not found["done"]:
        raise RuntimeError(f"it answered none of its first requests ({found['bad']:.0f} errors)")


def one_round(driver: Driver, contenders: list[Contender], seconds: int) -> None:
    """Each load on each of them, in turn."""
    for name in (JSON, STREAMS, PACED, TIMES):
        for each in contenders:
            load = load_of(name, each, seconds)
            before_s = each.process.cpu_s() if each.process else 0.0
            found = driver.run(load, each.port, each.ready.path, each.ready.model, each.ready.header)
            found["cpu_s"] = each.process.cpu_s() - before_s if each.process else 0.0
            each.figures.setdefault(name, []).append(found)


def load_of(name: str, contender: Contender, seconds: int) -> Load:
    if name == JSON:
        return Load(mode="json", words=("32", str(seconds)), asks="b-20-0-0")
    if name == STREAMS:
        return Load(mode="sse", words=("16", str(seconds)), asks="b-500-0-0", stream=True)
    if name == PACED:
        return Load(mode="sse", words=("64", str(seconds)), asks="b-50-20000-0", stream=True)
    return Load(mode="rate", words=(str(contender.rates()), str(seconds), "32"), asks="b-20-0-0")


def figures_of(contender: Contender, direct: Contender) -> Figures:
    """Medians over the rounds; of added times, the median of the differences to the same round without a gateway."""
    answers, streams, paced, times = (contender.figures[name] for name in (JSON, STREAMS, PACED, TIMES))
    streamed = all(each["chunks"] for each in streams)  # the slow do not come to the end of one
    added = [each["lat_p50"] - bare["lat_p50"] for each, bare in zip(times, direct.figures[TIMES], strict=True)]
    added_p99 = [each["lat_p99"] - bare["lat_p99"] for each, bare in zip(times, direct.figures[TIMES], strict=True)]
    return Figures(
        name=contender.name,
        requests_per_s=[each["rps"] for each in answers],
        cpu_us_per_request=median(each["cpu_s"] * 1e6 / max(1.0, each["done"]) for each in answers),
        frames_per_s=[each["cps"] for each in streams] if streamed else None,
        cpu_us_per_paced_frame=median(each["cpu_s"] * 1e6 / max(1.0, each["chunks"]) for each in paced),
        added_us=added,
        added_p99_us=added_p99,
        rate=contender.rates(),
        errors=sum(each["bad"] + each["errs"] for each in (*answers, *times)),
        memory_mib=contender.memory_mib,
    )


def said(error: Exception) -> str:
    """The last line of why it is missing."""
    text = getattr(error, "stderr", None) or str(error)
    return (text.strip().splitlines() or [type(error).__name__])[-1][:200]


if __name__ == "__main__":
    main()

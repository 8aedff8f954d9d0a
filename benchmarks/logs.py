"""How long `hedgerow analyze` takes over ten million calls, and `hedgerow whatif` over one, with pandas beside it.

    python benchmarks/logs.py [--rows 10000000] [--whatif-rows 1000000] [--rounds 1]

Each run is a process of its own, so that start and peak memory are in the figures. pandas reads the file and takes the
same percentiles of the same keys, nothing else.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import psutil

KEYS = 5
PANDAS = """
import sys, pandas
path = sys.argv[1]
frame = pandas.read_parquet(path) if path.endswith("parquet") else pandas.read_csv(path)
good = frame[frame.status == "ok"].groupby(["provider", "model"])
print(good[["ttft_s", "total_s"]].quantile([.5, .9, .95, .99, .999]))
"""
HEDGEROW = "from hedgerow.cli import main; main()"


def draw(folder: Path, rows: int, name: str, *, csv: bool) -> list[Path]:
    """A log of `rows` calls in order of time, as Parquet and, if asked, as CSV."""
    parquet = folder / f"{name}.parquet"
    tail = "case when random() < 0.02 then 2 / pow(random() + 1e-4, 0.8) else 0 end"
    query = f"""
        select 1.7e9 + i * 0.2 + random() * 0.1 as t_start, 'acme' as provider, 'model-' || (i % {KEYS}) as model,
            0.4 + 0.2 * random() + {tail} as ttft_s, 0 as pad, 1 + (100 * random())::int as output_tokens,
            (800 * exp(random()))::int as input_tokens, case when random() < 0.001 then 'error' else 'ok' end as status
        from range({rows}) as t(i)
    """
    whole = f"select * exclude (pad), ttft_s + output_tokens * (0.008 + 0.004 * random()) as total_s from ({query})"
    base = duckdb.connect(config={"memory_limit": "1GB", "temp_directory": str(folder)})
    base.execute(f"copy ({whole}) to '{parquet}' (format parquet)")
    if not csv:
        return [parquet]
    base.execute(f"copy (from '{parquet}') to '{folder / name}.csv' (format csv, header)")
    return [parquet, folder / f"{name}.csv"]


def timed(*command: object) -> tuple[float, float]:
    """Seconds and peak MB of a process with its children."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    watched, peak = psutil.Process(child.pid), 0
    while child.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.02)
    if child.returncode:
        assert child.stderr is not None
        raise SystemExit(f"{command} failed:\n{child.stderr.read().decode()}")
    return time.perf_counter() - began, peak / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--whatif-rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1, help="interleaved; medians are printed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = {}
        for path in draw(folder, args.rows, "analyzed", csv=True):
            kind = path.suffix[1:]
            runs[f"analyze, {args.rows:,} calls, {kind}"] = ("-c", HEDGEROW, "analyze", path, "--json")
            runs[f"pandas percentiles, {kind}"] = ("-c", PANDAS, path)
        (path,) = draw(folder, args.whatif_rows, "asked", csv=False)
        runs[f"whatif, {args.whatif_rows:,} calls, parquet"] = ("-c", HEDGEROW, "whatif", path, "--json")
        measured = {label: [] for label in runs}
        for _ in range(args.rounds):
            for label, command in runs.items():
                measured[label].append(timed(*command))
        print(f"{'':44} {'seconds':>9} {'peak MB':>9}")
        for label, found in measured.items():
            seconds, megabytes = (statistics.median(column) for column in zip(*found, strict=True))
            print(f"{label:44} {seconds:9.1f} {megabytes:9.0f}")


if __name__ == "__main__":
    main()

"""One replica of a small real model behind llama.cpp's server, as a process: `python replica.py MODEL.gguf PORT`. It serves
until its input ends, so that it ends with whoever started it."""

import sys

from xllamacpp import CommonParams, Server


def main(model: str, port: int) -> None:
    params = CommonParams()
    params.model.path = model
    params.n_ctx = 8192
    params.n_parallel = 2
    params.port = port
    params.endpoint_slots = params.endpoint_metrics = True
    params.cpuparams.n_threads = 1
    server = Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

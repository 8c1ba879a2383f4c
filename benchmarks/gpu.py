"""`python -m benchmarks.gpu`: a GPU against two cores of the same machine, all in one run.

    PYTHONPATH=src python -m benchmarks.gpu [--data MNIST_FOLDER] [sim] [mnist] [nodes] [sizes]

Without names, all parts. ``--data`` is for ``mnist``, which is skipped without it. Prints the
tables of docs/gpu.md as Markdown. Where the processor would take minutes, one task of it is
measured, and the line says so.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import conche
from conche.common.arrays import Array
from conche.common.device import Cpu, Device, find_device
from conche.paper.simulation.model import make_model
from conche.paper.simulation.rows import by_rows
from conche.tasks.features import CosineFeatures
from conche.tasks.mnist import read_idx

CORES = 2
Tasks = list[tuple[Any, Array]]


def timed(call: Callable[[], Any]) -> float:
    """Seconds, with all that the GPU was told to do."""
    torch = import_module("torch")
    torch.cuda.synchronize()
    clock = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - clock


@contextmanager
def two_cores() -> Iterator[None]:
    """What is measured here has no more of them."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:CORES])
    try:
        with threadpool_limits(CORES):
            yield
    finally:
        os.sched_setaffinity(0, every)


def row(what: str, gpu: float, cpu: float, more: str = "") -> None:
    units = [f"{1e3 * x:.1f} ms" if x < 1 else f"{x:.2f} s" for x in (gpu, cpu)]
    print(f"| {what} | {units[0]} | {units[1]} | {cpu / gpu:.1f} | {more} |", flush=True)


def simulation(device: Device) -> None:
    models = [make_model(16, 2048, [1024 // 2**i] * 2**i, n_shared=768) for i in range(11)]
    with two_cores():
        cpu = timed(lambda: by_rows(models, Cpu().draws(0, [0]), Cpu()))
    for together in (10, 100, 400):
        by_rows(models, device.draws(1, range(together)), device)
        trials = partial(by_rows, models, device.draws(0, range(together)), device)
        row(f"Fig. 4(a), one trial of {together} together", timed(trials) / together, cpu)
    sizes = [250_000_000] * 4
    large = partial(conche.simulate, 8, 500, sizes, n_shared=750_000_000)
    large(trials=200, device="cuda")
    gpu = timed(lambda: large(trials=200, device="cuda")) / 200
    with two_cores():
        cpu = timed(lambda: large(trials=2)) / 2
    row("p = 1e9, n = 500, K = 4, T = 8: one trial of 200 together", gpu, cpu)


def learn(model: Any, tasks: Tasks) -> list[float]:
    """Seconds of every task."""
    return [timed(partial(model.partial_fit, X, y)) for X, y in tasks]


def mnist(folder: Path) -> None:
    """All of MNIST, two new digits a task, 20,000 cosine features on 8 nodes."""
    X, y = images(folder, "train")
    some = [(y == c) | (y == c + 1) for c in range(0, 10, 2)]
    make = partial(conche.ConcheClassifier, 8, solver=conche.Memory(rank=2400))
    first = 0.0
    for dtype in (np.float64, np.float32):
        features = CosineFeatures(20_000, seed=0).fit(X[:2000].astype(dtype))
        tasks: Tasks = [(features.columns(X[s].astype(dtype)), y[s]) for s in some]
        if dtype is np.float64:
            with two_cores():
                first = learn(make(device="cpu"), tasks[:1])[0]
        learn(make(device="cuda"), tasks[:1])  # they are loaded now
        model = make(device="cuda")
        seconds = learn(model, tasks)
        test, labels = images(folder, "t10k")
        accuracy = np.mean(model.predict(features.columns(test.astype(dtype))) == labels)
        told = f"accuracy {accuracy:.4f}; all five tasks {sum(seconds):.2f} s"
        row(f"MNIST, 20,000 features, first task, {dtype.__name__}", seconds[0], first, told)


def images(folder: Path, part: str) -> tuple[Array, Array]:
    """Pixels between 0 and 1, and digits, of "train" or "t10k"."""
    pixels, labels = (
        read_idx(folder / f"{part}-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1")
    )
    return pixels.reshape(len(pixels), -1) / 255, labels.astype(int)


def stream(n: int, p: int, n_tasks: int) -> Tasks:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(p) / p**0.5
    columns = [rng.standard_normal((n, p)) for _ in range(n_tasks)]
    return [(X, X @ w + 0.1 * rng.standard_normal(n)) for X in columns]


def compare(what: str, make: Callable[..., Any], tasks: Tasks, cpu_tasks: int = 2) -> None:
    """The last task's seconds, from NumPy's arrays and from arrays that are there already."""
    torch = import_module("torch")
    learn(make(device="cuda"), tasks[:1])
    model = make(device="cuda")
    from_here = learn(model, tasks)[-1]
    there = [(torch.as_tensor(X, device="cuda"), y) for X, y in tasks]
    gpu = learn(make(), there)[-1]
    one, other = make(device="cpu"), make(device="cuda")
    with two_cores():
        cpu = learn(one, tasks[:cpu_tasks])[-1]
    learn(other, tasks[:cpu_tasks])
    apart = np.max(np.abs(one.coef_ - other.coef_)) / np.max(np.abs(one.coef_))
    more = f"{1e3 * from_here:.0f} ms from NumPy; coefficients differ by {apart:.0e}"
    row(what, gpu, cpu, more)


def nodes() -> None:
    """A thousand nodes."""
    tasks = stream(1000, 100_000, 2)
    what = "n = 1000, p = 100,000, K = 1000"
    compare(f"{what}, exact", partial(conche.CoCoARegressor, 1000), tasks)
    damped = partial(conche.CoCoARegressor, 1000, solver="damped", n_rounds=10, steps="cg")
    compare(f"{what}, damped, 10 rounds", damped, tasks)
    compare(f"{what}, memory", partial(conche.ConcheRegressor, 1000), tasks, cpu_tasks=1)


def sizes() -> None:
    """Where the GPU starts to win."""
    for n, p in ((100, 50), (1000, 100), (1000, 500), (2000, 1000), (5000, 2000)):
        compare(f"lossless memory, n = {n}, p = {p}, K = 4", _conche(4), stream(n, p, 3))
    for n, p, rank in ((200, 3000, 300), (1000, 5000, 600), (2000, 10_000, 1000)):
        make = _conche(8, solver=conche.Memory(rank=rank))
        compare(f"rank {rank}, n = {n}, p = {p}, K = 8", make, stream(n, p, 3))
    for n, p in ((200, 100), (1000, 500), (2000, 2000), (5000, 5000)):
        make = partial(conche.CoCoARegressor, 4)
        compare(f"exact, n = {n}, p = {p}, K = 4", make, stream(n, p, 3))


def _conche(K: int, **parameters: Any) -> Callable[..., Any]:
    return partial(conche.ConcheRegressor, K, **parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    device = find_device("cuda")
    torch = import_module("torch")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {CORES} cores\n")
    print("| what | GPU | two cores | ratio | |\n|---|---|---|---|---|")
    parts: dict[str, Callable[[], None]] = {
        "sim": lambda: simulation(device),
        "nodes": nodes,
        "sizes": sizes,
    }
    if given.data is not None:
        parts["mnist"] = lambda: mnist(given.data)
    for name in given.parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()

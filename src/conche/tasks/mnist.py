"""MNIST's idx files, and the five odd/even tasks of the paper's Section IV-F."""

from __future__ import annotations

import gzip
import os
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from .cosine import CosineFeatures
from .task import Array, Task

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


class IdxError(ValueError):
    """A file that is not what its name or its header promises."""


def read_idx(path: Path | str) -> Array:
    """The unsigned bytes of an idx file, raw or gzip-compressed, in the shape its header states."""
    path = Path(path)
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise IdxError(f"{path}: cannot be read ({error})") from error
    if len(data) < 4 or data[:3] != b"\x00\x00\x08" or data[3] == 0:
        raise IdxError(f"{path}: not an idx file of unsigned bytes (wrong magic number)")
    header = 4 + 4 * data[3]
    if len(data) < header:
        raise IdxError(f"{path}: ends within its header")
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", data[3], offset=4))
    expected = header + int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise IdxError(f"{path}: {len(data)} bytes, but its header promises {expected}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def find_mnist(folder: Path | str | None = None) -> Path | None:
    """The folder with MNIST's four idx files: the given one, one called mnist in it, or the cache.

    A folder that is given and has no such files is an error; without one, None says that the
    user's cache (~/.cache/conche/mnist) has none either.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "conche" / "mnist"
    places = [cache] if folder is None else [Path(folder), Path(folder) / "mnist"]
    for place in places:
        if _file(place, FILES["train"][0]) is not None:
            return place
    if folder is None:
        return None
    raise IdxError(f"{folder}: no {FILES['train'][0]} (or .gz) here")


def odd_even_mnist(
    folder: Path | str,
    n_features: int = 3000,
    n_samples: int = 100,
    n_test: int = 2000,
    scale: float = 0.2,
    seed: int = 0,
) -> tuple[list[Task], list[Task]]:
    """(train, test): five tasks of one even digit (label -1) and the next odd one (label 1).

    Pixels between 0 and 1 pass through random cosine features. Training samples come from the
    training file; test samples from the test file, and, where that has fewer than ``n_test`` of a
    task's digits, from the training images that were not drawn.
    """
    images, digits, first_test = _images(Path(folder))
    features = CosineFeatures(n_features, scale, seed).fit(images[:1] / 255)
    rng = np.random.default_rng([seed, 1])
    train: list[Task] = []
    test: list[Task] = []
    for even in range(0, 10, 2):
        rows = np.flatnonzero((digits == even) | (digits == even + 1))
        learnt = rng.permutation(rows[rows < first_test])
        if len(learnt) < n_samples:
            raise IdxError(f"{folder}: only {len(learnt)} training images of {even} and {even + 1}")
        unseen = np.concatenate([rng.permutation(rows[rows >= first_test]), learnt[n_samples:]])
        if len(unseen) < n_test:
            raise IdxError(f"{folder}: only {len(unseen)} test images of {even} and {even + 1}")
        for tasks, part in ((train, learnt[:n_samples]), (test, unseen[:n_test])):
            y = np.where(digits[part] == even, -1.0, 1.0)
            X = features.transform(images[part] / 255)
            tasks.append(Task(X, y, name=f"{even}/{even + 1}"))
    return train, test


@lru_cache(maxsize=1)
def _images(folder: Path) -> tuple[Array, Array, int]:
    """All images as rows, their digits, and where the test file's begin."""
    images, digits = [], []
    for names in FILES.values():
        paths = [_file(folder, name) or folder / name for name in names]
        pixels, labels = (read_idx(path) for path in paths)
        if pixels.ndim != 3 or labels.ndim != 1:
            raise IdxError(f"{paths[0]}: expected images and labels, got another number of axes")
        if len(pixels) != len(labels):
            raise IdxError(f"{paths[0]}: {len(pixels)} images for {len(labels)} labels")
        if len(labels) and labels.max() > 9:
            raise IdxError(f"{paths[1]}: a label is {labels.max()}, not a digit")
        images.append(pixels.reshape(len(pixels), -1))
        digits.append(labels)
    if images[0].shape[1] != images[1].shape[1]:
        raise IdxError(f"{folder}: training and test images have different sizes")
    return np.concatenate(images), np.concatenate(digits), len(images[0])


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None

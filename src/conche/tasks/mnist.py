"""MNIST's idx files, and the five odd/even tasks of the paper's Section IV-F."""

from __future__ import annotations

import gzip
import os
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..common.arrays import Array
from ..common.checks import whole
from ..errors import StreamError
from .digits import odd_even_task
from .features import CosineFeatures
from .task import Task

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def read_idx(path: Path | str) -> Array:
    """The unsigned bytes of an idx file, raw or gzip-compressed, in the shape its header states.

    Parameters
    ----------
    path : of the file; it ends in .gz where it is compressed.

    Returns
    -------
    An array of ``uint8``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "labels-idx1-ubyte"
    ...     _ = file.write_bytes(bytes([0, 0, 8, 1]) + bytes([0, 0, 0, 3]) + bytes([7, 2, 1]))
    ...     read_idx(file).tolist()
    [7, 2, 1]
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise StreamError(f"{path}: cannot be read ({error})") from error
    if len(data) < 4 or data[:3] != b"\x00\x00\x08" or data[3] == 0:
        raise StreamError(f"{path}: not an idx file of unsigned bytes (wrong magic number)")
    header = 4 + 4 * data[3]
    if len(data) < header:
        raise StreamError(f"{path}: ends within its header")
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", data[3], offset=4))
    expected = header + int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise StreamError(f"{path}: {len(data)} bytes, but its header promises {expected}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def find_mnist(folder: Path | str | None = None) -> Path | None:
    """The folder with MNIST's four idx files: the given one, one called mnist in it, or the cache.

    A folder that is given and has no such files is an error; without one, None says that the
    user's cache (~/.cache/conche/mnist) has none either.

    Parameters
    ----------
    folder : where to look; None: in the user's cache.

    Returns
    -------
    The folder, or None.

    Examples
    --------
    >>> find_mnist("no_such_folder")
    Traceback (most recent call last):
    ...
    conche.errors.StreamError: no_such_folder: no train-images-idx3-ubyte (or .gz) here
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "conche" / "mnist"
    places = [cache] if folder is None else [Path(folder), Path(folder) / "mnist"]
    for place in places:
        if _file(place, FILES["train"][0]) is not None:
            return place
    if folder is None:
        return None
    raise StreamError(f"{folder}: no {FILES['train'][0]} (or .gz) here")


def odd_even_mnist(
    folder: Path | str,
    n_features: int = 3000,
    n_samples: int = 100,
    n_test: int = 2000,
    scale: float = 0.2,
    seed: int = 0,
    lazy: bool = False,
) -> tuple[list[Task], list[Task]]:
    """(train, test): five tasks of one even digit (label -1) and the next odd one (label 1).

    Parameters
    ----------
    folder : where MNIST's four idx files are; `find_mnist` looks for it.
    n_features, scale : of the `CosineFeatures` of the pixels, which are between 0 and 1.
    n_samples : training samples of a task, from the training file.
    n_test : test samples of a task, from the test file, and, where that has fewer of a task's
        digits, from the training images that were not drawn.
    seed : of the features and of the choice of samples.
    lazy : leave the features to be computed where they are needed (`conche.tasks.Columns`).

    Examples
    --------
    >>> import conche
    >>> folder = conche.tasks.find_mnist()  # None where the files are not in the user's cache
    >>> if folder is not None:
    ...     train, test = conche.odd_even_mnist(folder, n_features=100)
    """
    whole("n_samples", n_samples)
    whole("n_test", n_test)
    images, digits, first_test = _images(Path(folder))
    features = CosineFeatures(n_features, scale, seed).fit(images[:1] / 255)
    rng = np.random.default_rng([seed, 1])
    train: list[Task] = []
    test: list[Task] = []
    for even in range(0, 10, 2):
        rows = np.flatnonzero((digits == even) | (digits == even + 1))
        learnt = rng.permutation(rows[rows < first_test])
        if len(learnt) < n_samples:
            raise StreamError(
                f"{folder}: only {len(learnt)} training images of {even} and {even + 1}"
            )
        unseen = np.concatenate([rng.permutation(rows[rows >= first_test]), learnt[n_samples:]])
        if len(unseen) < n_test:
            raise StreamError(f"{folder}: only {len(unseen)} test images of {even} and {even + 1}")
        for tasks, part in ((train, learnt[:n_samples]), (test, unseen[:n_test])):
            X = (features.columns if lazy else features.transform)(images[part] / 255)
            tasks.append(odd_even_task(X, digits[part], even))
    return train, test


@lru_cache(maxsize=1)
def _images(folder: Path) -> tuple[Array, Array, int]:
    """All images as rows, their digits, and where the test file's begin."""
    images, digits = [], []
    for names in FILES.values():
        paths = [_file(folder, name) or folder / name for name in names]
        pixels, labels = (read_idx(path) for path in paths)
        if pixels.ndim != 3 or labels.ndim != 1:
            raise StreamError(f"{paths[0]}: expected images and labels, got another number of axes")
        if len(pixels) != len(labels):
            raise StreamError(f"{paths[0]}: {len(pixels)} images for {len(labels)} labels")
        if len(labels) and labels.max() > 9:
            raise StreamError(f"{paths[1]}: a label is {labels.max()}, not a digit")
        images.append(pixels.reshape(len(pixels), -1))
        digits.append(labels)
    if images[0].shape[1] != images[1].shape[1]:
        raise StreamError(f"{folder}: training and test images have different sizes")
    return np.concatenate(images), np.concatenate(digits), len(images[0])


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None

"""MNIST's idx files: what is read, and what is refused by name."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conche.common.arrays import Array
from conche.errors import ParameterError, StreamError
from conche.tasks.mnist import find_mnist, odd_even_mnist, read_idx

from .helpers.streams import need


def idx(array: Array) -> bytes:
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(
        f">{array.ndim}I", *array.shape
    )
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small MNIST: 3 x 3 images whose first pixel is the digit, and whose last is the file."""
    rng = np.random.default_rng(0)
    for which, (prefix, n) in enumerate((("train", 300), ("t10k", 100))):
        labels = rng.permutation(np.arange(n) % 10)
        images = rng.integers(0, 255, (n, 3, 3))
        images[:, 0, 0], images[:, 2, 2] = labels, which
        (tmp_path / f"{prefix}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    return tmp_path


def test_raw_and_compressed_files_are_read(folder: Path) -> None:
    images = read_idx(folder / "train-images-idx3-ubyte")
    labels = read_idx(folder / "train-labels-idx1-ubyte.gz")
    assert images.shape == (300, 3, 3) and images.dtype == np.uint8
    assert np.array_equal(images[:, 0, 0], labels)


def test_five_tasks_of_an_even_and_an_odd_digit(folder: Path) -> None:
    train, test = odd_even_mnist(folder, n_features=7, n_samples=20, n_test=30, seed=1)
    assert [task.name for task in train] == ["0/1", "2/3", "4/5", "6/7", "8/9"]
    for task in train:
        assert task.X.shape == (20, 7) and set(task.y) == {-1.0, 1.0}
    # 20 of 30 come from the test file, the rest from training images that were not drawn
    assert all(task.X.shape == (30, 7) for task in test)
    for learnt, held in zip(train, test, strict=True):
        together = np.concatenate([learnt.X, held.X])
        assert len(np.unique(together, axis=0)) == 50
    again, _ = odd_even_mnist(folder, n_features=7, n_samples=20, n_test=30, seed=1)
    assert np.array_equal(again[0].X, train[0].X)


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("train-images-idx3-ubyte", lambda b: b[:-1], "but its header promises"),
        ("train-images-idx3-ubyte", lambda b: b"\x01" + b[1:], "wrong magic number"),
        ("train-images-idx3-ubyte", lambda b: b[:9], "ends within its header"),
        ("train-images-idx3-ubyte", lambda b: b"", "wrong magic number"),
        ("train-labels-idx1-ubyte.gz", lambda b: b[:-20], "cannot be read"),
        ("t10k-images-idx3-ubyte", lambda b: idx(np.zeros((99, 3, 3))), "99 images for 100 labels"),
        ("t10k-images-idx3-ubyte", lambda b: idx(np.zeros((100, 2, 2))), "different sizes"),
        ("t10k-labels-idx1-ubyte.gz", lambda b: idx(np.full(100, 11)), "a label is 11"),
    ],
)
def test_spoilt_files_are_named(
    folder: Path, name: str, spoil: Callable[[bytes], bytes], message: str
) -> None:
    (folder / name).write_bytes(spoil((folder / name).read_bytes()))
    with pytest.raises(StreamError, match=message) as caught:
        odd_even_mnist(folder, n_features=3, n_samples=5, n_test=5)
    assert str(folder) in str(caught.value)


def test_too_few_images_are_named(folder: Path) -> None:
    with pytest.raises(StreamError, match="only 60 training images of 0 and 1"):
        odd_even_mnist(folder, n_samples=100)
    with pytest.raises(StreamError, match="only 70 test images of 0 and 1"):
        odd_even_mnist(folder, n_samples=10, n_test=2000)
    with pytest.raises(ParameterError, match="n_samples=0"):
        odd_even_mnist(folder, n_samples=0)


def test_where_the_files_are_looked_for(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_mnist(folder) == folder
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert find_mnist() is None
    (cache / "conche").mkdir()
    folder.rename(cache / "conche" / "mnist")
    assert find_mnist() == cache / "conche" / "mnist"
    with pytest.raises(StreamError, match="no train-images-idx3-ubyte"):
        find_mnist(tmp_path_factory.mktemp("empty"))


def test_the_real_files() -> None:
    train, test = odd_even_mnist(need("mnist"), n_features=5)
    assert [task.X.shape for task in (*train, *test)] == [(100, 5)] * 5 + [(2000, 5)] * 5

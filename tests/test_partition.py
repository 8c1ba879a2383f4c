"""Which node holds which columns: each exactly one, or a message that names the culprit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conche import ParameterError
from conche.nodes import Partition


def test_even_sizes_differ_by_at_most_one() -> None:
    for p in (1, 7, 10, 31):
        for K in range(1, p + 1):
            sizes = Partition.even(p, K).sizes
            assert sum(sizes) == p
            assert max(sizes) - min(sizes) <= 1


def test_blocks_cover_every_column_once() -> None:
    part = Partition.make(6, partition=[[5, 0], [1, 4, 2], [3]])
    assert sorted(np.concatenate(list(part))) == list(range(6))
    assert part.sizes == [2, 3, 1]


def test_contiguous_blocks_are_views() -> None:
    X = np.arange(60.0).reshape(6, 10)
    blocks = Partition.make(10, partition=[3, 7]).split(X)
    assert all(np.shares_memory(b, X) for b in blocks)


def test_join_undoes_split() -> None:
    part = Partition.make(6, partition=[[5, 0], [1, 4, 2], [3]])
    X = np.arange(12.0).reshape(2, 6)
    assert np.array_equal(part.join([b.T for b in part.split(X)], intercept=False), X.T)


def test_the_first_node_has_the_intercept() -> None:
    part = Partition.make(6, partition=[[5, 0], [1, 4, 2], [3]], intercept=True)
    assert part.weight_counts() == [3, 3, 1]
    parts = [np.array([[5.0], [0.0], [9.0]]), np.array([[1.0], [4.0], [2.0]]), np.array([[3.0]])]
    assert part.join(parts, intercept=True)[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 9]


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ([[0, 1], [3]], "column 2 is in no block"),
        ([[0, 1], [1, 2, 3]], "column 1 is in block 0 and in block 1"),
        ([[0, 0], [1, 2, 3]], "column 0 is in block 0 and in block 0"),
        ([[0, 1], [2, 3, 4]], "block 1 names column 4"),
        ([[0, 1, 2, 3], []], "block 1 has no columns"),
        ([2, 3], "add up to 5, but there are 4 columns"),
        ([4, 0], "size of block 1=0 must be a whole number of at least 1"),
        ([[0.5, 1], [2, 3]], "block 0 must be a list of column indices"),
    ],
)
def test_what_does_not_cover_is_refused_by_name(partition: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Partition.make(4, partition=partition)


@pytest.mark.parametrize("n_nodes", [0, -1, 5, 2.0, True])
def test_impossible_numbers_of_nodes(n_nodes: Any) -> None:
    with pytest.raises(ParameterError, match="n_nodes"):
        Partition.make(4, n_nodes)


def test_nodes_and_partition_must_agree() -> None:
    with pytest.raises(ParameterError, match="n_nodes=3 but the partition has 2 blocks"):
        Partition.make(4, 3, [2, 2])

"""
A head on frozen features
=========================

A head on frozen features: embeddings from any model in, class-incremental learning out::

    python examples/frozen_head.py

Needs no download. The "pretrained model" here is a small network that has seen the digits 0 to 4
and never learns again; its hidden layer makes the embeddings. A Conche head on top learns all ten
digits, two new ones a task, one pass, no sample stored, its columns on four nodes. At the end it
leaves as a plain scikit-learn model and, where skl2onnx is installed, as an ONNX file.
"""

# sphinx_gallery_thumbnail_path = 'figures/class_incremental.png'

from __future__ import annotations

import argparse
import importlib.util
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import conche
from conche.common.arrays import Array
from conche.common.atomic import write_atomically


def pretrained(X: Array, y: Array) -> MLPClassifier:
    """Stands for any network that somebody has trained on other data."""
    return MLPClassifier((256,), max_iter=60, tol=0.0, random_state=0).fit(X, y)


def embed(network: MLPClassifier, X: Array) -> Array:
    """The hidden layer's output: what a real user would get from ResNet, BERT, CLIP, ..."""
    return np.asarray(np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0))


def main(out: Path) -> None:
    warnings.simplefilter("ignore")  # the network stops before it has converged, on purpose
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    early = y[:300] < 5
    network = pretrained(X[:300][early], y[:300][early])
    Z, labels = embed(network, X[300:1300]), y[300:1300]
    Z_test, y_test = embed(network, X[1300:]), y[1300:]

    head = conche.ConcheClassifier(n_nodes=4)
    for task in range(5):
        rows = labels // 2 == task
        head.partial_fit(Z[rows], labels[rows])  # labels may appear in any task
        seen = y_test // 2 <= task
        print(f"classes 0 to {2 * task + 1}: accuracy {head.score(Z_test[seen], y_test[seen]):.3f}")

    at_once = conche.ConcheClassifier().fit(Z, labels)
    print(f"all samples at once:   {at_once.score(Z_test, y_test):.3f}")
    plain = conche.to_sklearn(head)
    same = np.mean(plain.predict(Z_test) == head.predict(Z_test))
    print(f"leaves as {plain}, with the same predictions for {same:.0%} of the test samples")
    if importlib.util.find_spec("skl2onnx") is None:
        print("for an ONNX file: pip install skl2onnx")
        return
    from skl2onnx import to_onnx

    model = to_onnx(plain, Z[:1].astype(np.float32))
    write_atomically(out / "head.onnx", model.SerializeToString())
    print(f"ONNX: {out / 'head.onnx'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--out", type=Path, default=Path("."), help="where to write head.onnx")
    main(parser.parse_args().out)

"""The paper's special cases, each as it is stated there (with docs/errata.md applied)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...common.arrays import Array
from ...common.checks import whole
from ...errors import ParameterError
from ..sizes import block_sizes, samples_per_task
from .moments import closed_moments, r_and_gamma
from .similarity import SharedSimilarity
from .stability import spectral_radius


def contraction(n_samples: int, n_features: int, n_nodes: int) -> float:
    """h of Corollary 1: what one task leaves of the old error. Examples 1 and 2.

    Parameters
    ----------
    n_samples, n_features, n_nodes : n, p and K; all tasks and blocks alike.

    Examples
    --------
    >>> contraction(n_samples=15, n_features=40, n_nodes=2)
    1.375
    """
    r, gamma, K = _equal(n_samples, n_features, n_nodes)
    return (K**2 + (1 - 2 * K) * r + (gamma * (K - 1) if K > 1 else 0.0)) / K**2


def corollary_1(
    gram: ArrayLike, n_samples: int, n_features: int, n_nodes: int, noise_var: ArrayLike
) -> Array:
    """G_T(w_t), t = 1..T, for equal blocks and task sizes, as printed.

    ``gram`` holds the inner products <w*_i, w*_j>, T x T; ``noise_var`` is one number, or T.

    Parameters
    ----------
    gram : the inner products <w*_i, w*_j>, T x T.
    n_samples, n_features, n_nodes : n, p and K; all tasks and blocks alike.
    noise_var : one number, or one per task.

    Examples
    --------
    >>> import numpy as np
    >>> one_truth = np.ones((2, 2))  # <w*_i, w*_j> = 1 for all pairs
    >>> corollary_1(one_truth, n_samples=64, n_features=32, n_nodes=4, noise_var=0.01).round(3)
    array([0.6  , 0.358])
    """
    g = np.asarray(gram, dtype=float)
    T = len(g)
    noise = np.broadcast_to(np.asarray(noise_var, dtype=float), T)
    r, gamma, K = _equal(n_samples, n_features, n_nodes)
    if np.isinf(gamma):
        return np.full(T, np.inf)
    h, b = contraction(n_samples, n_features, n_nodes), 1 - r / K
    own = np.diag(g)
    curve = []
    for t in range(1, T + 1):
        total: float = 0.0
        for i in range(T):
            apart = own + own[i] - 2 * g[i]  # |w_tau - w_i|^2
            error = own[i] * h**t + noise[i]
            for tau in range(t):
                after = h ** (t - 1 - tau)
                error += after * (apart[tau] * (r + (K - 1) * gamma) / K**2)
                error += after * noise[tau] * gamma / K
                coupling = 2 * after * (r - gamma) * (K - 1) / K**2
                for j in range(tau):
                    inner = g[tau, j] - g[tau, i] - g[i, j] + own[i]
                    error += coupling * r / K * b ** (tau - 1 - j) * inner
                error -= coupling * b**tau * (g[tau, i] - own[i])
            total += error
        curve.append(total / T)
    return np.array(curve)


def lin_et_al(gram: ArrayLike, n_samples: int, n_features: int, noise_var: float) -> float:
    """Theorem 4.1 of Lin et al. (2023): one node, p > n + 1, after the last task; less sigma^2.

    ``gram`` holds the inner products <w*_i, w*_j>, T x T.

    Parameters
    ----------
    gram : the inner products <w*_i, w*_j>, T x T.
    n_samples, n_features : n and p.
    noise_var : sigma^2.

    Examples
    --------
    >>> import numpy as np
    >>> round(lin_et_al(np.eye(3), n_samples=10, n_features=40, noise_var=0.0), 3)
    1.193
    """
    g = np.asarray(gram, dtype=float)
    T, p = len(g), n_features
    if p <= n_samples + 1:
        raise ParameterError(f"n_features={p} must exceed n_samples + 1 = {n_samples + 1}")
    r = n_samples / p
    own = np.diag(g)
    apart = own[:, None] + own[None, :] - 2 * g
    weights = r * (1 - r) ** np.arange(T - 1, -1, -1)
    signal = (1 - r) ** T * own.mean() + weights @ apart.sum(axis=1) / T
    return float(signal + p * noise_var / (p - n_samples - 1) * (1 - (1 - r) ** T))


def theorem_2(
    energy: ArrayLike,
    n_samples: int,
    partition: Sequence[int] | Array,
    noise_var: float,
    n_tasks: int | None,
) -> float:
    """One unknown vector for all tasks: G_T after the last of ``n_tasks``, or the limit (None).

    ``energy`` is |w*|^2 per block, or in all (then spread evenly over the columns). The limit is
    infinite where the spectral radius is 1 or more.

    Parameters
    ----------
    energy : |w*|^2 per block, or in all.
    n_samples, partition : n, and the block sizes p_k.
    noise_var : sigma^2.
    n_tasks : T; None: the limit.

    Examples
    --------
    >>> theorem_2(1.0, n_samples=15, partition=[4] * 10, noise_var=0.0, n_tasks=None)
    0.0
    """
    n, sizes = int(samples_per_task(n_samples, 1)[0]), block_sizes(partition)
    K = len(sizes)
    given = np.asarray(energy, dtype=float)
    e = given * sizes / sizes.sum() if given.ndim == 0 else given
    r, gamma = r_and_gamma(n, sizes)
    if not np.all(np.isfinite(gamma)):
        return float("inf")
    diagonal = 1 + (r * (1 - 2 * K) - gamma) / K**2
    if n_tasks is None:
        if spectral_radius(n, sizes) >= 1:
            return float("inf")
        # sum_tau h_tau = (I - L)^-1 1 with L = diagonal + 1 gamma^T / K^2 (Sherman-Morrison)
        u = 1 / (1 - diagonal)
        ones = u / (1 - gamma @ u / K**2)
        return float(noise_var * (1 + gamma @ ones / K**2))
    h, noise = np.ones(K), 0.0
    for _ in range(n_tasks):  # h_{tau,k}, from tau = T down to 1
        noise += float(gamma @ h)
        h = diagonal * h + gamma @ h / K**2
    return float(e @ h + noise_var * (1 + noise / K**2))


def corollary_3(n_samples: int, n_features: int, n_nodes: int, n_tasks: int) -> Array:
    """psi_0..psi_4 of the decomposition, written with geometric sums.

    The printed quotients are 0/0 at h = 1 and at b = h; the sums are not. All are infinite where
    |n - p_k| <= 1.

    Parameters
    ----------
    n_samples, n_features, n_nodes : n, p and K; all tasks and blocks alike.
    n_tasks : T.

    Examples
    --------
    >>> corollary_3(n_samples=64, n_features=32, n_nodes=4, n_tasks=8).round(3)
    array([1.087, 0.015, 0.189, 0.15 , 0.449])
    """
    T = whole("n_tasks", n_tasks)
    r, gamma, K = _equal(n_samples, n_features, n_nodes)
    if np.isinf(gamma):
        return np.full(5, np.inf)
    h, b = contraction(n_samples, n_features, n_nodes), 1 - r / K
    powers = h ** np.arange(T)
    one = powers.sum()  # (1 - h^T) / (1 - h)
    both = float(np.sum(powers * b ** np.arange(T - 1, -1, -1)))  # (h^T - b^T) / (h - b)
    coupling = 2 * (K - 1) * (r - gamma) / K**2 if K > 1 else 0.0
    return np.array(
        [
            1 + gamma / K * one,
            h**T,
            (r + (K - 1) * gamma if K > 1 else r) / K**2 * (T - 1) / T * one,
            coupling * (T - 1) / T * both,
            coupling * (T - 2) / T * (one - both),
        ]
    )


def corollary_4(
    n_samples: int,
    n_features: int,
    n_nodes: int,
    n_tasks: int | None,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
) -> float:
    """The expected error under Task Model 1 with equal blocks; ``n_tasks`` None is the limit.

    Parameters
    ----------
    n_samples, n_features, n_nodes : n, p and K; all tasks and blocks alike.
    n_tasks : T; None: the limit of ever more tasks.
    n_shared, energy : p_S, and E |w*_t|^2.
    noise_var : sigma^2.

    Examples
    --------
    >>> round(corollary_4(32, 1024, 2, n_tasks=16, n_shared=768, noise_var=0.01), 3)
    0.815
    """
    apart = (n_features - n_shared) / n_features
    if n_tasks is None:
        r, gamma, K = _equal(n_samples, n_features, n_nodes)
        h = contraction(n_samples, n_features, n_nodes)
        if not abs(h) < 1:
            return float("inf")
        return (1 + gamma / K / (1 - h)) * noise_var + 2 * r / K / (1 - h) * apart * energy
    psi = corollary_3(n_samples, n_features, n_nodes, n_tasks)
    if np.any(np.isinf(psi)):
        return float("inf")
    return float(psi[0] * noise_var + (psi[1] + apart * (2 * psi[2] + psi[3] + psi[4])) * energy)


def endless_error(
    n_samples: int,
    partition: Sequence[int] | Array,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
) -> float:
    """The error under Task Model 1 as tasks never end: Corollary 4's limit, for any blocks.

    The stationary point of the forward recursion, (diag(2 rho) - C) s = 2 rho common +
    C (own - common) + sigma^2 beta; C is diagonal plus rank one (Sherman-Morrison).

    Parameters
    ----------
    n_samples, partition : n, and the block sizes p_k.
    n_shared, energy : p_S, and E |w*_t|^2.
    noise_var : sigma^2.

    Returns
    -------
    The limit; infinite where the spectral radius is 1 or more.

    Examples
    --------
    >>> round(endless_error(2048, [128] * 8, n_shared=768, noise_var=0.01), 3)
    0.286
    >>> endless_error(15, [20, 20], n_shared=30, noise_var=0.01)  # see `spectral_radius`
    inf
    """
    if spectral_radius(n_samples, partition) >= 1:
        return float("inf")
    similarity = SharedSimilarity(1, partition, n_shared, energy)
    common, own = similarity.common, similarity.own
    m = closed_moments(n_samples, similarity.partition)
    right = 2 * m.rho * common + m.spread(own - common) + noise_var * m.beta
    u, v = right / (2 * m.rho - m.c_diag), m.beta / (2 * m.rho - m.c_diag)
    s = u + v * u.sum() / (1 - v.sum())
    return float(s.sum() + own.sum() - common.sum() + noise_var)


def lemma_3(error: float) -> float:
    """Half of the error on new data: what an old task's training error tends to (Lemma 3).

    Exact where the old task's data are independent of the estimate, so the training error vanishes
    with the generalization error.

    Parameters
    ----------
    error : the generalization error.

    Examples
    --------
    >>> lemma_3(0.5)
    0.25
    """
    return 0.5 * error


def lemma_4(
    n_samples: int, partition: Sequence[int] | Array, h: ArrayLike | None = None
) -> dict[str, Array]:
    """The Gaussian identities: each expectation is the number (per block) times the identity.

    Of blocks: E A_k^T A_k = n I; E A_k^+ A_k = r_k I; E (A_k A_k^T)^+ = gamma_k / n I; and
    E A_i^T (A_k A_k^T)^+ A_i = gamma_k I for i != k. With H = diag(h_k I), Abar of Lemma 1 and
    P = I - Abar A: the expectations of H Abar A, H P, Abar^T H Abar (one number),
    A^T Abar^T H Abar A, and P^T H P. ``h`` is 1 unless given.

    Parameters
    ----------
    n_samples, partition : n, and the block sizes p_k.
    h : one number per block.

    Examples
    --------
    >>> found = lemma_4(15, [20, 20])
    >>> found["ATA"], found["A+A"]  # n, and r_k
    (array(15.), array([0.75, 0.75]))
    """
    r, gamma = r_and_gamma(n_samples, partition)
    K = len(partition)
    h = np.ones(K) if h is None else np.asarray(h, dtype=float)
    others = np.array([np.sum(np.delete(h * gamma, k)) for k in range(K)])  # over i != k
    return {
        "ATA": np.array(float(n_samples)),
        "A+A": r,
        "(AAT)+": gamma / n_samples,
        "AT(AAT)+A": gamma,
        "H Abar A": h * r / K,
        "H P": h * (1 - r / K),
        "AbarT H Abar": np.asarray(h @ gamma / n_samples / K**2),
        "AT AbarT H Abar A": (h * r + others) / K**2,
        "PT H P": (h * (K**2 + r * (1 - 2 * K)) + others) / K**2,
    }


def _equal(n_samples: int, n_features: int, n_nodes: int) -> tuple[float, float, int]:
    """r, gamma and K of equal blocks."""
    if n_nodes < 1 or n_features % n_nodes:
        raise ParameterError(f"n_features={n_features} is not a multiple of n_nodes={n_nodes}")
    r, gamma = r_and_gamma(n_samples, [n_features // n_nodes])
    return float(r[0]), float(gamma[0]), n_nodes

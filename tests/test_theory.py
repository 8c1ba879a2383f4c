"""The theory, against the paper's printed form and against plain Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import conche
from conche.common.arrays import Array
from conche.errors import ParameterError
from conche.paper import theory
from conche.paper.theory import Similarity
from conche.paper.theory.moments import Moments, sampled_moments

from .helpers.theory_reference import simulate, theorem_1


def random_problem(
    rng: np.random.Generator, most: int = 9
) -> tuple[Array, list[int], list[int], Array]:
    """Unequal blocks and tasks, away from |n - p_k| <= 1."""
    K, T = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    sizes = rng.integers(1, most, K).tolist()
    allowed = [n for n in range(1, 3 * most) if all(abs(n - p) > 1 for p in sizes)]
    n = rng.choice(allowed, T).tolist()
    return rng.standard_normal((T, sum(sizes))), sizes, n, rng.random(T)


def test_forward_recursion_is_the_printed_theorem_1() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        W, sizes, n, noise = random_problem(rng)
        curve = theory.generalization_error(Similarity.from_weights(W, sizes), n, noise)
        printed = [theorem_1(W, sizes, n, noise, t) for t in range(1, len(W) + 1)]
        np.testing.assert_allclose(curve, printed, rtol=1e-12)


def test_blocks_may_be_lists_of_columns() -> None:
    rng = np.random.default_rng(1)
    W = rng.standard_normal((3, 6))
    lists = [[5, 0], [1, 4, 2], [3]]
    by_lists = theory.generalization_error(Similarity.from_weights(W, lists), 9, 0.1)
    ordered = W[:, [5, 0, 1, 4, 2, 3]]
    by_sizes = theory.generalization_error(Similarity.from_weights(ordered, [2, 3, 1]), 9, 0.1)
    np.testing.assert_allclose(by_lists, by_sizes)


PROBLEMS = [  # sizes, samples per task; gaps of at least 6, so that variances are finite
    ([20, 20], [6, 6, 6]),
    ([30, 14, 22], [5, 7, 3]),
    ([25], [8, 10, 12, 4]),
    ([16] * 4, [4, 9, 6]),
    ([40, 12], [4, 5, 2, 3]),
    ([4, 4], [20, 20, 20]),
    ([3, 8, 5], [16, 30, 24]),
    ([6], [20, 15, 40]),
    ([2] * 6, [12, 12, 30]),
    ([1] * 8, [10, 16, 12, 20]),
    ([5, 9], [24, 18, 30, 22]),
    ([4, 30], [14, 12, 16]),
    ([20, 3, 12], [40, 28, 26]),
    ([24, 5], [12, 40, 14, 36]),
    ([8, 8, 8], [1, 20, 1, 16]),
    ([30, 30], [2, 50, 4, 44]),
    ([12], [1, 30, 3]),
    ([3, 18], [10, 30, 11]),
    ([10, 10], [3, 2, 20, 1, 25]),
    ([7, 22, 2], [14, 12, 36]),
]


def band(values: Array, expected: ArrayLike, width: float = 4.0) -> None:
    """Within so many standard errors of the mean, for every task."""
    stderr = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    off = np.abs(values.mean(axis=0) - expected) / (stderr + 1e-12)
    assert np.all(off < width), (values.mean(axis=0), expected, off)


@pytest.mark.parametrize("index", range(len(PROBLEMS)))
def test_theorem_1_against_monte_carlo(index: int) -> None:
    sizes, n = PROBLEMS[index]
    rng = np.random.default_rng(index)
    W = rng.standard_normal((len(n), sum(sizes))) / np.sqrt(sum(sizes))
    noise = rng.random(len(n))
    errors, training = simulate(W, sizes, n, noise, seed=index)
    similarity = Similarity.from_weights(W, sizes)
    band(errors, theory.generalization_error(similarity, n, noise))
    band(training, theory.training_error(similarity, n, noise))


@pytest.mark.parametrize("n_rounds", [2, 5, 50])
@pytest.mark.parametrize(("sizes", "n"), [([5, 12, 9], [40, 26, 34]), ([4, 4], [20, 14, 30])])
def test_more_rounds_than_the_paper_allows(sizes: list[int], n: list[int], n_rounds: int) -> None:
    """p_k < n and more than one round: sampled moments, theory as before."""
    rng = np.random.default_rng(n_rounds)
    W = rng.standard_normal((len(n), sum(sizes))) / np.sqrt(sum(sizes))
    noise = np.full(len(n), 0.3)
    errors, _ = simulate(W, sizes, n, noise, n_rounds=n_rounds, seed=5)
    similarity = Similarity.from_weights(W, sizes)
    predicted = theory.generalization_error(similarity, n, noise, n_rounds=n_rounds, samples=2000)
    band(errors, predicted, width=4 * np.sqrt(2))  # two independent samples of 2000


@pytest.mark.parametrize("damping", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("sizes", "n"), [([8, 8], [8, 20, 4]), ([3, 14], [9, 9, 9])])
def test_the_damped_solver_has_a_theory_too(sizes: list[int], n: list[int], damping: float) -> None:
    rng = np.random.default_rng(3)
    W = rng.standard_normal((len(n), sum(sizes))) / np.sqrt(sum(sizes))
    noise = np.full(len(n), 0.3)
    similarity = Similarity.from_weights(W, sizes)
    for n_rounds in (1, 3):
        errors, _ = simulate(W, sizes, n, noise, n_rounds, damping, seed=7)
        predicted = theory.generalization_error(
            similarity, n, noise, n_rounds=n_rounds, damping=damping, samples=2000
        )
        band(errors, predicted, width=4 * np.sqrt(2))


def test_moments_are_cached_and_state_their_error() -> None:
    few = theory.moments(20, [4, 6], n_rounds=3, samples=16)
    many = theory.moments(20, [4, 6], n_rounds=3, samples=400)
    assert theory.moments(20, [4, 6], n_rounds=3, samples=16) is few
    assert 0 < many.stderr < few.stderr < 0.2
    assert theory.moments(20, [4, 6]).stderr == 0
    assert theory.moments(3, [40, 60], n_rounds=100).stderr == 0  # Assumption 2: closed


@pytest.mark.parametrize(("n", "sizes"), [(20, [4, 6, 4]), (5, [12, 9]), (9, [3, 20])])
def test_sampled_moments_agree_with_the_closed_form(n: int, sizes: list[int]) -> None:
    closed = theory.moments(n, sizes)
    sampled = sampled_moments(n, tuple(sizes), 1, None, 3000, 0)
    d = np.arange(1.0, len(sizes) + 1)
    parts: list[Callable[[Moments], Array]] = [
        lambda m: m.rho,
        lambda m: m.beta,
        lambda m: m.spread(d),
    ]
    for moment in parts:
        np.testing.assert_allclose(moment(sampled), moment(closed), rtol=5 * sampled.stderr)


def test_infinite_where_a_block_is_nearly_square() -> None:
    similarity = Similarity.shared(4, [10, 20], 15)
    for n in (9, 10, 11, 19, 20, 21):
        assert np.all(np.isinf(theory.generalization_error(similarity, n, 0.1)))
        assert theory.spectral_radius(n, [10, 20]) == np.inf
    curve = theory.generalization_error(similarity, [40, 40, 10, 40], 0.1)
    assert list(np.isinf(curve)) == [False, False, True, True]


def test_infinite_means_infinite_everywhere() -> None:
    assert theory.corollary_4(4, 8, 2, 3, 4, 0.1) == np.inf
    assert np.all(np.isinf(theory.corollary_1(np.eye(3), 4, 8, 2, 0.1)))
    assert np.all(np.isinf(theory.corollary_3(4, 8, 2, 3)))
    assert theory.lemma_4(4, [4, 9])["PT H P"][1] == np.inf
    first, *rest = theory.training_error(Similarity.shared(3, [4, 4], 2), [4, 20, 20], 0.1)
    assert np.isfinite(first)
    assert np.all(np.isinf(rest))


def test_shared_similarity_is_the_mean_over_task_model_1() -> None:
    rng = np.random.default_rng(0)
    sizes, T, n_shared = [3, 5, 4], 4, 6
    n, noise = [20, 9, 30, 14], [0.1, 0.2, 0.3, 0.4]
    curves = []
    for _ in range(3000):
        W = rng.standard_normal((T, 12)) / np.sqrt(12)
        W[:, :n_shared] = W[0, :n_shared]
        curves.append(theory.generalization_error(Similarity.from_weights(W, sizes), n, noise))
    expected = theory.generalization_error(Similarity.shared(T, sizes, n_shared), n, noise)
    band(np.array(curves), expected)


def test_corollary_1_is_theorem_1_for_equal_dimensions() -> None:
    rng = np.random.default_rng(0)
    for n, p, K in ((20, 12, 3), (3, 24, 4), (9, 6, 1), (5, 12, 1)):
        W = rng.standard_normal((5, p))
        noise = rng.random(5)
        general = theory.generalization_error(Similarity.from_weights(W, [p // K] * K), n, noise)
        np.testing.assert_allclose(theory.corollary_1(W @ W.T, n, p, K, noise), general, rtol=1e-11)


def test_one_node_is_the_formula_of_lin_et_al() -> None:
    W = np.random.default_rng(0).standard_normal((6, 30))
    curve = theory.generalization_error(Similarity.from_weights(W, [30]), 11, 0.3)
    assert theory.lin_et_al(W @ W.T, 11, 30, 0.3) == pytest.approx(curve[-1] - 0.3, rel=1e-12)
    with pytest.raises(ValueError, match="n_features=12 must exceed n_samples"):
        theory.lin_et_al(np.eye(2), 11, 12, 0.3)


def test_theorem_2_is_theorem_1_for_one_vector() -> None:
    rng = np.random.default_rng(0)
    sizes, n = [3, 8, 5], 30
    w = rng.standard_normal(16)
    energy = [w[:3] @ w[:3], w[3:11] @ w[3:11], w[11:] @ w[11:]]
    for T in (1, 4, 9):
        similarity = Similarity.from_weights(np.tile(w, (T, 1)), sizes)
        curve = theory.generalization_error(similarity, n, 0.2)
        assert theory.theorem_2(energy, n, sizes, 0.2, T) == pytest.approx(curve[-1], rel=1e-12)
    limit = theory.theorem_2(energy, n, sizes, 0.2, None)
    assert theory.theorem_2(energy, n, sizes, 0.2, 3000) == pytest.approx(limit, rel=1e-9)
    assert theory.theorem_2(energy, n, sizes, 0.0, None) == 0  # zero noise: Corollary 2
    assert theory.theorem_2(1.0, 12, [1, 10, 10], 0.0, None) == np.inf


def test_examples_1_and_2() -> None:
    assert theory.contraction(15, 40, 2) == pytest.approx(1.375)
    assert theory.contraction(15, 40, 10) == pytest.approx(0.846)
    assert theory.theorem_2(1.0, 15, [20, 20], 0.0, 60) > 1e6
    assert theory.theorem_2(1.0, 15, [4] * 10, 0.0, 200) < 1e-10


@pytest.mark.parametrize("p", [2, 8, 32])
def test_example_3(p: int) -> None:
    """n = 2p, T -> infinity, on one node and on p nodes."""
    s, n_shared = 0.3, p // 2
    apart = 2 * (p - n_shared) / p
    one = (1 + p / (p - 1)) * s + apart
    many = (1 + p / (4 * p - 3) / (p - 1)) * s + 2 * p / (4 * p - 3) * apart
    assert theory.corollary_4(2 * p, p, 1, None, n_shared, s) == pytest.approx(one)
    assert theory.corollary_4(2 * p, p, p, None, n_shared, s) == pytest.approx(many)
    assert many < one


@pytest.mark.parametrize(
    ("n", "p", "K"), [(20, 12, 3), (3, 24, 4), (9, 6, 1), (64, 32, 8), (5, 6, 2)]
)
@pytest.mark.parametrize("T", [1, 2, 7])
def test_corollaries_3_and_4_are_theorem_1(n: int, p: int, K: int, T: int) -> None:
    """(5, 6, 2) has h = 1, where the printed quotients are 0/0."""
    expected = theory.generalization_error(Similarity.shared(T, [p // K] * K, p / 3), n, 0.1)[-1]
    assert theory.corollary_4(n, p, K, T, p / 3, 0.1) == pytest.approx(expected, rel=1e-11)


def test_corollary_3_is_continuous_through_h_equal_one_and_b_equal_h() -> None:
    assert theory.contraction(5, 6, 2) == pytest.approx(1.0)
    psi = theory.corollary_3(5, 6, 2, 7)
    assert np.all(np.isfinite(psi))
    assert theory.contraction(4, 1, 1) == 0  # h = b = 0
    assert np.all(theory.corollary_3(4, 1, 1, 5)[3:] == 0)
    # against the printed quotients where they are defined
    n, p, K, T = 20, 12, 3, 6
    r, gamma = (float(x[0]) for x in theory.r_and_gamma(n, [4]))
    h, b = theory.contraction(n, p, K), 1 - r / K
    one, both = (1 - h**T) / (1 - h), (h**T - b**T) / (h - b)
    c = 2 * (K - 1) * (r - gamma) / K**2
    apart = (r + (K - 1) * gamma) / K**2 * (T - 1) / T * one
    cross = (c * (T - 1) / T * both, c * (T - 2) / T * (one - both))
    printed = [1 + gamma / K * one, h**T, apart, *cross]
    np.testing.assert_allclose(theory.corollary_3(n, p, K, T), printed, rtol=1e-12)


def test_limit_of_many_tasks() -> None:
    near = theory.corollary_4(64, 32, 8, 4000, 24, 0.01)
    assert theory.corollary_4(64, 32, 8, None, 24, 0.01) == pytest.approx(near, rel=1e-3)
    assert theory.corollary_4(15, 40, 2, None, 20, 0.01) == np.inf


def test_the_papers_printed_number() -> None:
    assert round(theory.corollary_4(32, 1024, 2, 16, 768, 0.01), 2) in (0.81, 0.82)  # 0.815
    curve = theory.generalization_error(
        Similarity.shared(16, [512] * 2, 768), 32, 0.01, n_rounds=100
    )
    assert curve[-1] == pytest.approx(0.815, abs=5e-4)


def test_lemma_4_against_samples() -> None:
    rng = np.random.default_rng(0)
    for n, p in ((6, 16), (18, 7)):
        identities = theory.lemma_4(n, [p])
        A = rng.standard_normal((3000, n, p))
        other = rng.standard_normal((3000, n, 1))
        pinv = np.linalg.pinv(A)
        outer = pinv.transpose(0, 2, 1) @ pinv  # (A A^T)^+
        samples = {
            "ATA": np.sum(A**2, axis=(1, 2)) / p,
            "A+A": np.einsum("tpn,tnp->t", pinv, A) / p,
            "(AAT)+": np.einsum("tnn->t", outer) / n,
            "AT(AAT)+A": (other.transpose(0, 2, 1) @ outer @ other)[:, 0, 0],
        }
        for name, values in samples.items():
            expected = np.ravel(identities[name])[0]
            stderr = values.std() / np.sqrt(len(values))
            assert abs(values.mean() - expected) <= 4 * stderr + 1e-9, name


def test_lemma_4_with_weights_against_samples() -> None:
    rng = np.random.default_rng(1)
    n, sizes, h = 14, [4, 24], np.array([0.7, 1.9])
    identities = theory.lemma_4(n, sizes, h)
    A = rng.standard_normal((4000, n, 28))
    blocks = [slice(0, 4), slice(4, 28)]
    Abar = np.concatenate([np.linalg.pinv(A[:, :, b]) for b in blocks], axis=1) / 2
    H = np.repeat(h, sizes)[None, :, None]
    AbarA = Abar @ A
    P = np.eye(28) - AbarA

    def per_block(matrices: Array) -> Array:
        diagonal = np.einsum("tii->ti", matrices)
        return np.stack([diagonal[:, b].mean(axis=1) for b in blocks], axis=1)

    outer = Abar.transpose(0, 2, 1) @ (H * Abar)
    band(per_block(H * AbarA), identities["H Abar A"])
    band(per_block(H * P), identities["H P"])
    band(np.einsum("tii->t", outer)[:, None] / n, [identities["AbarT H Abar"]])
    band(per_block(A.transpose(0, 2, 1) @ outer @ A), identities["AT AbarT H Abar A"])
    band(per_block(P.transpose(0, 2, 1) @ (H * P)), identities["PT H P"])


def test_lemma_3_training_error_follows_the_generalization_error() -> None:
    """An old task's training error is near half the error on new data, and both vanish."""
    first: dict[int, list[float]] = {2: [], 6: [], 20: []}
    new: dict[int, list[float]] = {2: [], 6: [], 20: []}
    for seed in range(200):
        tasks = conche.gaussian_tasks(20, 20, 8, n_shared=8, noise_var=0.0, seed=seed)
        model = conche.CoCoARegressor(n_nodes=2)
        for t, task in enumerate(tasks, start=1):
            model.partial_fit(task.X, task.y)
            if t in first:
                first[t].append(conche.training_error(model.coef_, tasks[:1]))
                new[t].append(conche.generalization_error(model.coef_, tasks))
    for t in first:
        exact = theory.theorem_2(1.0, 20, [4, 4], 0.0, t)
        assert abs(np.mean(new[t]) - exact) < 4 * np.std(new[t]) / np.sqrt(200)
    # an approximation: the first task's data are not quite independent of the estimate
    assert np.mean(first[6]) == pytest.approx(theory.lemma_3(float(np.mean(new[6]))), rel=0.5)
    assert np.mean(first[20]) < 1e-3 * np.mean(first[2])


# --- stability ---------------------------------------------------------------------------------


def update_matrix(n: int, sizes: list[int]) -> Array:
    """The K x K matrix of docs/errata.md, in full."""
    K = len(sizes)
    r, gamma = theory.r_and_gamma(n, sizes)
    M = np.tile(gamma / K**2, (K, 1))
    np.fill_diagonal(M, 1 + r * (1 - 2 * K) / K**2)
    return M


def test_spectral_radius_is_that_of_the_full_matrix() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        _, sizes, n, _ = random_problem(rng)
        full = np.abs(np.linalg.eigvals(update_matrix(n[0], sizes))).max()
        assert theory.spectral_radius(n[0], sizes) == pytest.approx(full, rel=1e-10, abs=1e-12)


def test_the_papers_condition_holds_and_the_error_diverges() -> None:
    sizes, n = [1, 10, 10], 12
    assert theory.theorem_2_condition(n, sizes, printed=True)
    assert not theory.theorem_2_condition(n, sizes)
    assert theory.spectral_radius(n, sizes) == pytest.approx(1.577, abs=5e-4)
    errors = [theory.theorem_2(1.0, n, sizes, 0.0, T) for T in (1, 2, 4, 6, 20)]
    assert errors == sorted(errors)
    assert errors[-1] > 100


def test_the_corrected_condition_is_sufficient() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        sizes = rng.integers(1, 40, int(rng.integers(1, 6))).tolist()
        n = int(rng.integers(1, 90))
        if theory.theorem_2_condition(n, sizes):
            held += 1
            assert theory.spectral_radius(n, sizes) < 1
    assert held > 200


def test_stability_is_what_the_error_does() -> None:
    for n, sizes in ((15, [20, 20]), (15, [4] * 10), (30, [20, 12]), (26, [20, 12])):
        similarity = Similarity.shared(400, sizes, sum(sizes))
        curve = theory.generalization_error(similarity, n, 0.0)
        assert (curve[-1] < curve[0]) == (theory.spectral_radius(n, sizes) < 1)


def test_stability_of_more_rounds_and_of_damping() -> None:
    assert theory.spectral_radius(40, [10, 10], n_rounds=3) < theory.spectral_radius(40, [10, 10])
    assert theory.spectral_radius(15, [20, 20]) > 1
    assert theory.spectral_radius(15, [20, 20], damping=1.0) < 1


# --- scale and bad input ------------------------------------------------------------------------


def test_many_nodes_are_no_matter() -> None:
    few = theory.spectral_radius(100, [5] * 5 + [7] * 5)
    assert few < theory.spectral_radius(100, [5] * 50_000 + [7] * 50_000) < 1


def test_a_trillion_columns_and_their_small_twin() -> None:
    def curve(scale: int) -> Array:
        similarity = Similarity.shared(8, [scale // 4] * 4, 3 * scale // 4)
        return theory.generalization_error(similarity, scale // 32, 0.01)

    np.testing.assert_allclose(curve(10**12), curve(10**8), rtol=1e-7)


def as_given(value: Any) -> Any:
    """A value of a type that the checker would refuse."""
    return value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Similarity.shared(4, [5, 5], 11), "n_shared=11"),
        (lambda: Similarity.shared(0, [5, 5], 1), "n_tasks=0"),
        (lambda: Similarity.shared(4, [5, 0], 1), "every node needs"),
        (lambda: Similarity.shared(4, as_given([2.5, 2.5]), 1), "whole number of columns"),
        (lambda: Similarity.shared(4, as_given([[0, 1], [2]]), 1), "whole number of columns"),
        (lambda: theory.theorem_2(1.0, 0, [4, 4], 0.1, 3), "n_samples=0"),
        (lambda: theory.moments(as_given(20.5), [4]), "n_samples=20.5"),
        (lambda: theory.corollary_3(20, 8, 2, 0), "n_tasks=0"),
        (lambda: Similarity.shared(4, [5], 1, energy=-1), "energy=-1"),
        (lambda: Similarity.from_weights(np.ones((2, 6)), [3, 4]), "add up to 7"),
        (lambda: theory.spectral_radius(0, [5]), "n_samples=0"),
        (lambda: theory.moments(5, [3], n_rounds=0), "n_rounds=0"),
        (lambda: theory.moments(5, [3], damping=-1.0), "damping=-1.0"),
        (lambda: theory.contraction(5, 7, 2), "not a multiple"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_one_number_per_task_or_one_for_all() -> None:
    similarity = Similarity.shared(3, [5, 5], 2)
    with pytest.raises(ValueError, match="n_samples has 2 values for n_tasks=3"):
        theory.generalization_error(similarity, [20, 20], 0.1)
    with pytest.raises(ValueError, match="noise_var=-0.1"):
        theory.generalization_error(similarity, 20, -0.1)


def test_theory_is_what_the_software_does() -> None:
    """The real nodes, not a simulation of them."""
    errors = []
    for seed in range(300):
        tasks = conche.gaussian_tasks(3, 20, 12, n_shared=6, noise_var=0.2, seed=seed)
        model = conche.CoCoARegressor(n_nodes=3)
        for task in tasks:
            model.partial_fit(task.X, task.y)
        errors.append(conche.generalization_error(model.coef_, tasks))
    expected = theory.generalization_error(Similarity.shared(3, [4] * 3, 6), 20, 0.2)[-1]
    band(np.array(errors)[:, None], [expected])

"""What users may rely on: the exported names, the exceptions, and an import that stays light."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import conche
from conche import errors

EXPORTED = [
    "CoCoAClassifier",
    "CoCoARegressor",
    "ConcheClassifier",
    "ConcheError",
    "ConcheRegressor",
    "CorrelationWarning",
    "CosineFeatures",
    "Damped",
    "DataError",
    "DeviceError",
    "DeviceWarning",
    "DivergenceError",
    "ElasticNet",
    "ErrorMatrix",
    "Exact",
    "FileStream",
    "Graph",
    "Memory",
    "MissingExtraError",
    "ModelFileError",
    "NearSquareWarning",
    "NetworkError",
    "NodeError",
    "NodeStream",
    "ParameterError",
    "Plan",
    "ReLUFeatures",
    "ReplayWarning",
    "Simulation",
    "SpecError",
    "StreamError",
    "StreamPipeline",
    "Task",
    "elastic_net_path",
    "error_matrix",
    "gaussian_tasks",
    "generalization_error",
    "load",
    "odd_even_mnist",
    "offline_solution",
    "plan",
    "plan_from_tasks",
    "save",
    "simulate",
    "tasks",
    "theory",
    "to_sklearn",
    "train",
    "training_error",
]
ERRORS: dict[str, type[Exception]] = {
    "ConcheError": Exception,
    "ParameterError": ValueError,
    "DataError": ValueError,
    "StreamError": ValueError,
    "SpecError": ValueError,
    "ModelFileError": ValueError,
    "NodeError": ValueError,
    "NetworkError": RuntimeError,
    "DivergenceError": ArithmeticError,
    "DeviceError": RuntimeError,
    "MissingExtraError": ImportError,
}
HEAVY = ("pyarrow", "matplotlib", "typer", "rich", "ray", "mpi4py")


def test_exported_names() -> None:
    assert conche.__all__ == EXPORTED == sorted(EXPORTED)


@pytest.mark.parametrize("name", EXPORTED)
def test_every_exported_name_is_documented(name: str) -> None:
    thing = getattr(conche, name)
    said = inspect.getdoc(thing)
    assert said and not said.startswith(f"{name}("), "a dataclass that says nothing of itself"
    if not inspect.isclass(thing):
        return
    for method, function in vars(thing).items():
        if not method.startswith("_") and callable(function):
            assert inspect.getdoc(getattr(thing, method)), f"{name}.{method}"


def test_the_whole_hierarchy_of_exceptions() -> None:
    """Each is a ConcheError and the builtin that its page says."""
    defined = {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, Exception) and not issubclass(kind, Warning)
    }
    assert set(defined) == set(ERRORS)
    page = errors.__doc__ or ""
    for name, builtin in ERRORS.items():
        kind = defined[name]
        assert issubclass(kind, errors.ConcheError) and issubclass(kind, builtin), name
        assert getattr(conche, name) is kind
        if name not in ("ConcheError", "StreamError"):
            assert re.search(rf"{name}\b.*\(also {builtin.__name__}\)", page), name
    assert issubclass(errors.StreamError, errors.DataError)
    for warning in (errors.NearSquareWarning, errors.CorrelationWarning):
        assert issubclass(warning, UserWarning) and not issubclass(warning, errors.ConcheError)


def test_import_loads_the_core_alone() -> None:
    """As if nothing heavy were installed: scikit-learn takes some of it along where it is."""
    code = f"""
import sys

class Missing:
    asked = []  # by our own modules

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {(*HEAVY, "pandas")}:
            frame = sys._getframe(1)
            while "importlib" in frame.f_globals["__name__"]:
                frame = frame.f_back
            if frame.f_globals["__name__"].startswith("conche"):
                self.asked.append((frame.f_globals["__name__"], name))
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from conche import *
print(Missing.asked, [name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "[] []"), done.stderr


def test_what_was_asked_for_once_is_an_attribute_like_any_other() -> None:
    """As tools expect that read a module's own names, the reference's among them."""
    assert conche.Memory is vars(conche)["Memory"] and set(conche.__all__) <= set(vars(conche))

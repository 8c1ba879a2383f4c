"""Trials sampled exactly in distribution; Monte Carlo with standard errors."""

from .simulate import Simulation, simulate

__all__ = ["Simulation", "simulate"]

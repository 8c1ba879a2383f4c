"""The paper's own room: its theory, the planner built on it, its simulation and its figures."""

"""The paper's own room: its theory, its simulation and its figures."""

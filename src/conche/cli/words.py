"""Messages in the words of the command line: ``--nodes 9``, where Python says ``n_nodes=9``."""

from __future__ import annotations

import re

OPTIONS = {  # Python's parameters, and what they are called here
    "n_nodes": "nodes",
    "n_nodes_max": "nodes-max",
    "n_rounds": "rounds",
    "n_features": "features",
    "n_samples": "samples",
    "n_tasks": "tasks",
    "n_shared": "shared",
    "noise_var": "noise",
    "fit_intercept": "intercept",
    "sample_weight": "weight",
    "class_weight": "class-weight",
    "local_steps": "local-steps",
    "l1_ratio": "l1-ratio",
    "task_column": "task-column",
}
SAME = "solver steps tol network scaling missing loss seed rank ridge damping discount alpha metric"
SAME += " drop categories dates separator drift energy bandwidth latency device rows workers"
SAME += " shared noise rounds trials"
OPTIONS |= {name: name for name in SAME.split()}
OF_NODES = ("drop", "categories", "dates", "separator")  # in a TOML file, a node's own
WRITTEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(?:'([^']*)'|([^\s,;:()]+))")


def in_options(text: str) -> str:
    """The same with options as they are typed.

    >>> in_options("n_nodes=9: 3 columns fit on 1 to 3 nodes; use scaling=None or missing='mean'")
    '--nodes 9: 3 columns fit on 1 to 3 nodes; use --scaling none or --missing mean'
    >>> print(in_options("node 'rain': a.csv: column 'sky' is text; drop='sky' leaves it out"))
    node 'rain': a.csv: column 'sky' is text; drop = ["sky"] leaves it out
    """
    by_node = text.startswith("node '")

    def option(found: re.Match[str]) -> str:
        name, quoted, plain = found.groups()
        value = quoted if quoted is not None else "none" if plain == "None" else plain
        if by_node and name in OF_NODES:
            return f'{name} = "{value}"' if name == "separator" else f'{name} = ["{value}"]'
        return f"--{OPTIONS[name]} {value}"

    return WRITTEN.sub(option, text)

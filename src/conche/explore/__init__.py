"""A page to explore theory and models on, and reports to share; nothing is fetched from outside.

The way of a picture: `settings` reads what is asked, `answers` asks the planner and the theory,
`worker` simulates in a process of its own (`jobs` watches it), `known` and `model` put a trained
model into plain data; `tables` and `theory_tables` have the numbers of every figure. `guard` lets
nobody in but this machine's user, `app` has the addresses, `serve` starts it, `report` writes the
same views into one file. `static` is what browsers show.
"""

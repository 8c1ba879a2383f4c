"""One module per command; importing it hangs the command on the app, in the order of the help."""

from . import train, predict, evaluate, info, demo, plan, explore, reproduce  # noqa: F401, I001

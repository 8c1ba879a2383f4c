"""The gallery's order: a path through the stories, then the programs."""

from __future__ import annotations

ORDER = ["forgetting", "nodes", "certificate", "new_classes", "rank", "drift", "zeros"]


class StoriesFirst:
    """What sphinx-gallery sorts the files of a folder with."""

    def __init__(self, folder: str):
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        name = file.removesuffix(".py").removeprefix("plot_")
        return (ORDER.index(name) if name in ORDER else len(ORDER), file)

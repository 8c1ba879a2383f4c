"""How Sphinx builds the site: `make docs`. Nothing is fetched, neither now nor by its readers."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from conche import __version__  # noqa: E402  # after the path of the extensions

project = "Conche"
author = "The Conche developers"
copyright = author  # Sphinx asks for it under this name
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",  # this and the next two are in _ext
    "reference",
    "commands",
]
exclude_patterns = ["examples/**/*.ipynb", "examples/**/*.py", "examples/**/*.md5"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# The documents: Markdown that GitHub shows as well
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# The reference
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
autodoc_member_order = "groupwise"
templates_path = ["_templates"]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # `reference` chooses them
default_role = "py:obj"
add_module_names = False
smartquotes = False  # --nodes is no dash
highlight_language = "none"  # of blocks that do not say what they are
python_use_unqualified_type_names = True

# The examples: those called plot_ are run; the others have options or need data, and are shown
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["examples"],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "stories.StoriesFirst",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "image_srcset": ["2x"],
    "plot_gallery": "True",
    "abort_on_example_error": True,
}

# How it looks
html_theme = "furo"
html_title = "Conche"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#6b3e1f",
        "color-brand-content": "#8a4b1f",
        "code-font-size": "0.78rem",  # a hundred characters fit
    },
    "dark_css_variables": {"color-brand-primary": "#e0a878", "color-brand-content": "#e8b78c"},
    "navigation_with_keys": True,
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

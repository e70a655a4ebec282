"""Sphinx's configuration. share/kedge/docs copies the pages to one directory, with the places that they have in the
source tree, and builds there: links between pages, and from pages to sources, are the same as in the repository."""

import os

project = "Kedge"
copyright = "the Kedge authors, BSD-3-Clause"  # noqa: A001
version = release = os.environ.get("KEDGE_VERSION", "")
extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"Kedge {version}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["kedge.css"]
html_extra_path = ["_reference"]
# Links to headings as the repository's pages have them.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
# A link that leads nowhere is a warning, and warnings are errors (share/kedge/docs).
nitpicky = True

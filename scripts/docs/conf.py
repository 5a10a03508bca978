"""Sphinx's settings for the pages that make_html.py collects."""

project = "Millrace"
html_title = "Millrace"
extensions = ["myst_parser"]
root_doc = "docs/index"
myst_heading_anchors = 6  # with anchors like GitHub's
myst_enable_extensions: list[str] = []
highlight_language = "none"  # for blocks without a language
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_permalinks = True
# For excerpts in search results, the browser would have to read other files, which it does not
# allow for pages opened from disk.
html_show_search_summary = False
html_static_path = ["_static"]
html_css_files = ["millrace.css"]
pygments_style = "friendly"
pygments_dark_style = "native"

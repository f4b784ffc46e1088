"""Sphinx makes the site of `npm run site -- FOLDER` from the pages as they are: docs/design/libraries.md says why Sphinx."""
import re
from pathlib import Path

project = html_title = "Nodeyard"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/README"
# Pages outside of docs/, too, since pages link to them; the sources that pages link to become part of the site as they are.
include_patterns = ["*.md", *(f"{folder}/**" for folder in ("bench", "docs", "elements", "examples", "packages", "simulation", "testing"))]
exclude_patterns = ["**/node_modules", "**/dist"]
# Ids of headings as GitHub makes them, which links use.
myst_heading_anchors = 6
# An example with `...` in it is no mistake.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "alabaster"
html_theme_options = {"page_width": "80em", "sidebar_width": "16em"}
html_copy_source = False

CONTENTS = "\n```{{toctree}}\n:hidden:\n:glob:\n:titlesonly:\n\n{}*\n```\n"
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)\)")


def read(app, name, source):
    """A folder has no page, so a link to one becomes text; pages named README get a table of contents of their folder."""
    folder = Path(app.srcdir, name).parent
    text = LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0])
    if not name.startswith("docs/"):
        text = f"---\norphan: true\n---\n{text}"
    if name.startswith("docs/") and name.endswith("README"):
        text += CONTENTS.format("*/README\n" if name == root_doc else "")
    source[0] = text


def setup(app):
    app.connect("source-read", read)

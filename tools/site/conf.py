"""Sphinx makes the site of `npm run site -- FOLDER` from the pages as they are: docs/design/libraries.md says why Sphinx."""
import re
import shutil
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
html_theme_options = {"page_width": "80em", "sidebar_width": "18em", "show_relbar_bottom": True}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html", "localtoc.html"]}
html_static_path = ["static"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_copy_source = html_show_copyright = html_show_sphinx = False
# Licences of the styles and scripts that each page loads, as Debian has them.
LICENCES = ("sphinx-common", "python3-alabaster")
# Sphinx keeps these for themes of before 5.0, and loads them on every page.
UNUSED = ("jquery.js", "underscore.js", "_sphinx_javascript_frameworks_compat.js")

CONTENTS = "\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{}\n```\n"
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)\)")


def read(app, name, source):
    """A folder has no page, so a link to one becomes text. Pages named README give their folder the order of their links."""
    folder = Path(app.srcdir, name).parent
    targets = [target for _, target in LINK.findall(source[0])]
    text = LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0])
    if not name.startswith("docs/"):
        text = f"---\norphan: true\n---\n{text}"
    if name.startswith("docs/") and name.endswith("README"):
        # Of their own folder, and from the first page on the other READMEs.
        own = re.compile(r"([\w-]+/README|[\w-]+)\.md" if name == root_doc else r"([\w-]+)\.md")
        text += CONTENTS.format("\n".join(dict.fromkeys(match[1] for match in map(own.fullmatch, targets) if match)))
    source[0] = text


def without_unused(app, name, template, context, doctree):
    context["script_files"] = [file for file in context["script_files"] if Path(file.filename).name not in UNUSED]


def finish(app, error):
    if error is not None:
        return
    # Its own notes for the next time: most of the folder.
    shutil.rmtree(app.doctreedir)
    static = Path(app.outdir, "_static")
    for name in UNUSED:
        (static / name).unlink()
    texts = [Path("/usr/share/doc", package, "copyright").read_text() for package in LICENCES]
    (static / "licences.txt").write_text("\n".join(texts))


def setup(app):
    app.connect("source-read", read)
    app.connect("html-page-context", without_unused)
    app.connect("build-finished", finish)

"""The pages in a real browser: no sideways scrolling on a phone, readable in both themes, printable, and no network."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine (.ci/run installs it)")
PROBE = """<body style="margin:0">
<iframe id="page" src="page.html" style="width:{width}px;height:900px;border:0"></iframe><script>
page.onload = () => {{
  const inside = page.contentDocument, root = inside.documentElement, style = getComputedStyle(inside.body);
  const cut = [...inside.querySelectorAll("h1, h2, p, figure, svg, pre, .verdict, .wide")]
    .filter(each => each.getBoundingClientRect().right > root.clientWidth + 1).map(each => each.tagName);
  const found = {{scroll: root.scrollWidth, client: root.clientWidth, cut, ink: style.color, paper: style.backgroundColor,
    pictures: inside.querySelectorAll("svg").length, loaded: performance.getEntriesByType("resource").length}};
  document.body.append(Object.assign(document.createElement("output"), {{textContent: JSON.stringify(found)}}));
}}</script></body>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages of one log, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("pages")
    log = folder / "calls.csv"
    rows = [
        f"{1.79e9 + 60 * k},acme-with-a-rather-long-name,m-{k % 2},{first},{first + 0.9},800,90"
        for k, first in ((k, 30.0 if k % 45 == 7 else 0.5) for k in range(2000))
    ]
    log.write_text("\n".join(["t_start,provider,model,ttft_s,total_s,input_tokens,output_tokens", *rows]))
    found = []
    for command in ("analyze", "whatif"):
        page = folder / command / "page.html"
        page.parent.mkdir()
        subprocess.run(
            [sys.executable, "-c", "from hedgerow.cli import main; main()", command, str(log), "--report", str(page)],
            check=True,
            capture_output=True,
        )
        found.append(page)
    return found


def browse(folder: Path, *options: str) -> str:
    assert BROWSER is not None
    command = [
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=5000", *options,
    ]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout


@needs_browser
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_fit_phones_and_screens_in_both_themes(pages: list[Path], width: int, dark: bool) -> None:
    for page in pages:
        probe = page.parent / "probe.html"
        probe.write_text(PROBE.format(width=width))
        theme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        dom = browse(page.parent, "--window-size=1600,1000", theme, "--dump-dom", probe.as_uri())
        said = re.search(r"<output>(.*?)</output>", dom)
        assert said is not None, dom[-500:]
        found = json.loads(said[1])
        assert found["scroll"] <= found["client"], f"{page}: scrolls sideways at {width} px"
        assert found["cut"] == []
        assert found["pictures"] >= 1
        assert found["loaded"] <= 1  # the page itself
        ink, paper = (sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("ink", "paper"))
        assert (ink > paper + 300) if dark else (paper > ink + 300)


@needs_browser
def test_pages_print(pages: list[Path]) -> None:
    for page in pages:
        printed = page.with_suffix(".pdf")
        browse(page.parent, f"--print-to-pdf={printed}", page.as_uri())
        assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) >= 1

"""Takes the picture of the HTML page: a real check of the sample run, in a real Chromium, on a light desktop.

python -m docs.pictures.page
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.reports.browser import Browser

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
WIDTH, HEIGHT = 1200, 846  # ends between two charts
LARGEST = 150_000  # bytes of the picture


def main() -> None:
    """Writes page.png beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "health.html"
        command = [sys.executable, "-m", "rlhealth", "report", "fixtures/runs", "-o", str(page)]
        subprocess.run(command, cwd=ROOT, check=True)
        page.write_text(page.read_text(encoding="utf-8").replace(f"{ROOT}/", ""), encoding="utf-8")
        browser = Browser(Path(folder))
        try:
            browser.send("Emulation.setScrollbarsHidden", hidden=True)
            browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
            browser.open(page, WIDTH, HEIGHT)
            picture = base64.b64decode(browser.send("Page.captureScreenshot", format="png")["data"])
        finally:
            browser.close()
    assert len(picture) <= LARGEST, f"{len(picture)} bytes"
    (HERE / "page.png").write_bytes(picture)


if __name__ == "__main__":
    main()

"""The font that a browser in a test has, whatever fonts the machine has."""

from __future__ import annotations

from pathlib import Path

# DejaVu Sans and DejaVu Sans Mono, of Debian's fonts-dejavu-core.
FONTS = Path("/usr/share/fonts/truetype/dejavu")
SETTINGS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <selectfont><rejectfont><glob>*Serif*</glob><glob>*Math*</glob></rejectfont></selectfont>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


def font_settings(folder: Path) -> dict[str, str]:
    """Returns the environment of a browser that has only these fonts, and keeps what it knows about them in the folder."""
    path = folder / "fonts.conf"
    path.write_text(SETTINGS.format(fonts=FONTS, cache=folder / "fonts"))
    return {"FONTCONFIG_FILE": str(path), "LANG": "C.UTF-8", "TZ": "UTC"}

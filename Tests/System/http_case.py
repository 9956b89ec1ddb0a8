"""What the checks of the API over HTTP share: the server that `http_api.py` has started."""

from __future__ import annotations

import http.client
from pathlib import Path

from brief_case import BriefCase

ROOT = Path(__file__).resolve().parents[2]
CHANGING = {"X-Larder": "1"}


class HTTPCase(BriefCase):
    address: str
    port: int
    directory: str

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        self.addCleanup(connection.close)
        return connection

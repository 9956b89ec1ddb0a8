"""The API and the console's requests behind nginx, as `contrib/operations.md` says it is configured."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import requests
from http_case import CHANGING, ROOT, HTTPCase

KEYS = ["a/b", "a//b", "/a", "//", "a/", "a/./b", "a/../b", "..", ".", "../../victim/entries/important", "a%2Fb", "a%2F%2Fb",
        "%2e%2e", "é/ü", "?", "a?b=c", "#", "a#b", "a&b", "a+b", "a b", "\\", "a\\..\\b", "x" * 2_000, "\u0001"]  # fmt: skip


class HTTPProxy(HTTPCase):
    """nginx passes paths on as they are, or, with a path in `proxy_pass`, made anew."""

    proxy_port: int
    proxy: subprocess.Popen[bytes] | None = None

    @classmethod
    def setUpClass(cls) -> None:
        folder = Path(cls.directory) / "nginx"
        folder.mkdir()
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            cls.proxy_port = unused.getsockname()[1]
        (block,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "contrib" / "operations.md").read_text(), re.DOTALL)
        block = block.replace("127.0.0.1:7480", f"127.0.0.1:{cls.port}")
        plain = f"location / {{ proxy_pass http://127.0.0.1:{cls.port}; proxy_http_version 1.1; }}"
        (folder / "nginx.conf").write_text(f"""
            {'user root;' if os.getuid() == 0 else ''}
            daemon off; pid {folder}/pid; error_log {folder}/error.log;
            events {{}}
            http {{
              access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
              fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
              server {{ listen 127.0.0.1:{cls.proxy_port}; {block} {plain} }}
            }}""")
        program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if program is None:
            raise SystemExit("nginx is missing; install nginx-light")
        cls.proxy = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"])
        cls.addClassCleanup(cls.stop)
        deadline = time.monotonic() + 20
        while True:
            try:
                requests.get(f"http://127.0.0.1:{cls.proxy_port}/larder/healthz", timeout=10)
                break
            except requests.ConnectionError:
                if cls.proxy.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit((folder / "error.log").read_text()) from None
                time.sleep(0.02)

    @classmethod
    def stop(cls) -> None:
        if cls.proxy is not None:
            cls.proxy.terminate()
            cls.proxy.wait()

    def raw(self, port: int, method: str, target: str, body: bytes = b"", **fields: str) -> tuple[int, bytes, str | None]:
        """Sends a target as it is, which most clients change."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request(method, target, body=body or None, headers={**CHANGING, **fields})
            response = connection.getresponse()
            return response.status, response.read(), response.headers["ETag"]
        finally:
            connection.close()

    def test_every_key_by_query(self) -> None:
        """Each key in a parameter names the same entry with and without the proxy, and only this entry."""
        for prefix in ["/larder", ""]:
            for key in KEYS:
                with self.subTest(prefix=prefix, key=key):
                    for other in KEYS:
                        self.raw(self.port, "PUT", f"/v1/stores/films/entry?key={quote(other, safe='')}", other.encode())
                    target = f"{prefix}/v1/stores/films/entry?key={quote(key, safe='')}"
                    self.assertEqual(self.raw(self.proxy_port, "GET", target)[:2], (200, key.encode()))
                    self.assertEqual(self.raw(self.proxy_port, "DELETE", target)[0], 204)
                    self.assertEqual({other for other in KEYS if not self.has(other)}, {key})

    def has(self, key: str) -> bool:
        return self.raw(self.port, "GET", f"/v1/stores/films/entry?key={quote(key, safe='')}")[0] == 200

    def test_keys_in_paths(self) -> None:
        """A path names the same entry with and without the proxy, or is refused without it."""
        for key in KEYS:
            for encoded in {quote(key, safe="/"), quote(key, safe="")}:
                target = f"/v1/stores/films/entries/{encoded}"
                direct = self.raw(self.port, "PUT", target, b"direct")
                if direct[0] == 400:
                    continue
                with self.subTest(target=target):
                    self.assertEqual(direct[0], 204)
                    self.assertEqual(self.raw(self.proxy_port, "GET", f"/larder{target}")[1], b"direct")
                    self.assertEqual(self.raw(self.proxy_port, "DELETE", f"/larder{target}")[0], 204)
                    self.assertEqual(self.raw(self.port, "GET", target)[0], 404)

    def test_conditions_and_streams(self) -> None:
        url = f"http://127.0.0.1:{self.proxy_port}/larder/v1/stores/films/entries/proxied"
        value = b"0123456789" * 200_000
        put = requests.put(url, data=value, headers=CHANGING, timeout=10)
        self.assertEqual(put.status_code, 204, put.text)
        tag = put.headers["ETag"]
        part = requests.get(url, headers={"Range": "bytes=5-9", "If-Range": tag}, timeout=10)
        self.assertEqual((part.status_code, part.content), (206, b"56789"))
        self.assertEqual(requests.get(url, headers={"If-None-Match": f"W/{tag}"}, timeout=10).status_code, 304)
        self.assertEqual(requests.put(url, data=b"x", headers={**CHANGING, "If-Match": '"0"'}, timeout=10).status_code, 412)
        watch = requests.get(f"http://127.0.0.1:{self.proxy_port}/larder/v1/stores/films/changes", stream=True, timeout=10)
        lines = watch.iter_lines(chunk_size=1)
        self.assertIn(b"incarnation", next(lines))
        self.assertEqual(requests.delete(url, headers={**CHANGING, "If-Match": tag}, timeout=10).status_code, 204)
        while b'"delete"' not in next(lines):
            pass
        watch.close()

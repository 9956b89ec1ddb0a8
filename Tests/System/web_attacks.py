"""What the console and its listener do against text that tries to be code, clients with few rights, and other sites."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

from larder import Write
from playwright.sync_api import expect
from web_case import ConsoleCase

# What must be shown as it is, as keys and values and names.
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '"><svg onload=alert(1)>', "javascript:alert(1)",
    "\u202eevil\u202c", "a\x00b", "line\nbreak", "__proto__", "constructor", "..", ".", "../../etc/passwd", "%2f%2e", "a?b#c&d=e",
    "<a href=javascript:alert(1)>x</a>", "{{7*7}}", "'; DROP TABLE films; --", " spaces ", "😀", "x" * 4096,
]  # fmt: skip


# Texts that look alike, unless what can't be seen in them is marked.
ALIKE = [
    "abcexe.jpg", "abc\u202egpj.exe", "abc\u200bexe.jpg", "abcexe.jpg ", " abcexe.jpg", "abcexe.jpg\n", "abc\u2066exe.jpg",
    "abcexe.jp\u0261", "\u0430bcexe.jpg", "abc\U000e0061exe.jpg", "abc\u00adexe.jpg", "abc\u0435x\u0435.jpg", "abcexe.jpg\x00",
    "abcexe.jpg\x1b", "abcexe.jpg\ufeff", "abcexe.jpg\u3164", "abc\u034fexe.jpg", "abcexe.jpg\u2029", "abcexe.jpg\x7f",
    "\u0441\u043e\u0440", "cop", "c\u043ep", "\u00e4", "a\u0308", "a b", "a\u00a0b", "a\u2003b", "a\u2800b", "K", "\u212a",
    "\u041c\u043e\u0441\u043a\u0432\u0430", "\u041coc\u043a\u0432a",
    "a-b:c/d.fi", "a\u2010b:c/d.fi", "a\u2011b:c/d.fi", "a-b\u2236c/d.fi", "a-b:c\u2215d.fi", "a-b:c/d\u2024fi", "a-b:c/d.\ufb01",
]  # fmt: skip


class HostileTextTests(ConsoleCase):
    """Text that tries to be code is shown as it is."""

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.delete_all()

    def test_keys_and_values(self) -> None:
        with self.store() as store:
            for text in HOSTILE:
                store.put(text, text.encode())
        self.open("store", "films", "entries")
        expect(self.page.get_by_text(f"{len(HOSTILE)} entries")).to_be_visible()
        self.page.get_by_label("Delimiter of folders").fill("")
        self.page.get_by_label("Delimiter of folders").press("Enter")
        self.page.set_viewport_size({"width": 1280, "height": 1200})
        keys = self.page.get_by_role("tree", name="Keys").locator(".verbatim")
        requested = []
        self.page.on("request", lambda request: requested.append(request.url.partition("?")[0]))
        expect(keys.filter(has_text="etc/passwd")).to_be_visible()
        expect(keys).to_have_count(len(HOSTILE))
        self.assertEqual(sorted(keys.evaluate_all("(all) => all.map((element) => element.textContent)")), sorted(HOSTILE))
        for text in HOSTILE:
            with self.subTest(text=text[:40]):
                self.open("store", "films", "entries", text)
                expect(self.page.locator("pre.value")).to_be_visible()
                self.assertEqual(self.page.locator("article h1 .verbatim").evaluate("(element) => element.textContent"), text)
                value = self.page.locator("pre.value").evaluate("(element) => element.textContent")
                self.assertEqual(value, text)
                # The key arrives as it is, when it is written and deleted, too.
                self.click("Edit")
                self.page.locator("textarea.editor").press("Control+End")
                self.page.keyboard.type("!")
                self.click("Save")
                expect(self.page.get_by_text("Saved.")).to_be_visible()
                with self.store() as store:
                    self.assertEqual(store.get(text).value, f"{text}!".encode())
                self.click("Delete…")
                self.click("Delete", "dialog")
                expect(self.page.get_by_role("tree", name="Keys")).to_be_visible()
                self.page.get_by_text("Deleted ").first.wait_for()
                with self.store() as store:
                    self.assertEqual(store.get(text), None)
        # No key was in a path, where a proxy could take it for another.
        paths = {url.removeprefix(self.url) for url in requested if "/v1/stores/" in url}
        self.assertEqual(paths - {f"v1/stores/films/{name}" for name in ["entry", "entries", "count", "tree"]}, set())

    def test_texts_that_look_alike(self) -> None:
        with self.store() as store:
            for text in ALIKE:
                store.put(text, text.encode())
        for place in ["article h1", "pre.value"]:
            pictures = {}
            for text in ALIKE:
                if place == "pre.value" and text in ("abcexe.jpg\n", "abcexe.jpg ", " abcexe.jpg", "a  b"):
                    continue  # A value may have spaces and lines, which are seen when it is edited.
                self.open("store", "films", "entries", text)
                shown = self.page.locator(place)
                expect(shown).to_be_visible()
                self.assertEqual(shown.evaluate("(element) => element.textContent"), text)
                pictures.setdefault(shown.screenshot(animations="disabled"), []).append(text)
            self.assertEqual([texts for texts in pictures.values() if len(texts) > 1], [])
        # The direction of what follows isn't changed.
        self.open("store", "films", "entries", "abc\u202egpj.exe")
        columns = self.page.locator("article h1 .verbatim").evaluate(
            """(element) => [...element.childNodes].flatMap((node) => [...node.textContent].map((_, index) => {
              const range = document.createRange();
              const text = node.firstChild ?? node;
              range.setStart(text, index);
              range.setEnd(text, index + 1);
              return range.getBoundingClientRect().left;
            }))"""
        )
        self.assertEqual(columns, sorted(columns))
        # Words of another alphabet are not suspicious.
        self.open("store", "films", "entries", "\u041c\u043e\u0441\u043a\u0432\u0430")
        expect(self.page.locator("article h1")).to_be_visible()
        expect(self.page.locator("article").locator(".alike, .unseen")).to_have_count(0)

    def test_documents_and_errors(self) -> None:
        with self.store() as store:
            for number, text in enumerate(HOSTILE):
                store.put(f"document/{number:02}", json.dumps({text: text, "n": number}).encode())
        self.open("store", "films", "find")
        for view in ["table", "json"]:
            self.page.get_by_label("Query", exact=True).fill('{"selector": {"n": {"$gte": 0}}}')
            self.click("Run")
            self.page.get_by_label("View of the results").select_option(view)
            text = self.page.locator(".results").evaluate("(element) => element.textContent")
            for hostile in HOSTILE[:4]:
                self.assertTrue(hostile in text or json.dumps(hostile) in text, hostile)
        for hostile in HOSTILE[:-1]:
            self.page.get_by_label("Query", exact=True).fill(json.dumps({"selector": {"n": {"$mod": hostile}}}))
            self.click("Run")
            expect(self.page.locator(".flaw")).not_to_be_empty()
            self.page.get_by_label("Query", exact=True).fill(json.dumps({hostile: 1}))
            expect(self.page.locator(".flaw")).to_contain_text("no member")
        self.open("store", "<img src=x onerror=alert(1)>", "entries")
        expect(self.page.get_by_text("onerror").first).to_be_visible()
        self.open("store", "films", "watch")
        expect(self.page.get_by_text("Watching.")).to_be_visible()
        with self.store() as store:
            for text in HOSTILE:
                store.put(text, text.encode())
        expect(self.page.get_by_role("region", name="Changes").get_by_role("row")).to_have_count(len(HOSTILE) + 1)


class RightsTests(ConsoleCase):
    """Whoever may do little is refused by the server, not by the page."""

    options: list[str] = []

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory(prefix="larder-tokens-") as folder:
            tokens = Path(folder) / "tokens"
            cls.tokens = {
                name: subprocess.run(
                    [cls.larder, "token", "create", name, "--file", tokens], check=True, stdout=subprocess.PIPE, text=True
                ).stdout.strip()
                for name in ["admin", "reader", "tenant"]
            }
            configuration = Path(folder) / "larderd.yaml"
            configuration.write_text(f"""
stores: [films=memory]
tokens: {tokens}
access:
- unix=admin
- principal:admin=admin
- principal:reader=read:films
- principal:tenant=write:films/tenant/*
""")
            cls.options = ["--config", str(configuration)]
            super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.put_many([Write(f"{folder}/{number}", b"value") for folder in ["tenant", "other"] for number in range(5)])

    def log_in(self, name: str) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill(self.tokens[name])
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector("header")

    def test_logging_in(self) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill("not a token")
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("alert")).to_contain_text("not accepted")
        # A typo, and others' wrong tokens, keep nobody out who has a right one.
        statuses = {self.status("ldr_" + "A" * 43) for _ in range(20)}
        self.assertEqual(statuses, {429})
        self.log_in("admin")
        expect(self.page.locator(".who")).to_have_text("admin")
        self.page.reload()
        expect(self.page.locator(".who")).to_have_text("admin")
        self.click("Log out")
        expect(self.page.get_by_label("Token")).to_be_visible()

    def test_links(self) -> None:
        """A link has the rights of the user of the command line, once, and until the browser logs out."""
        link = self.run_larder("console").strip()
        self.assertTrue(link.startswith(f"{self.url}#link=ldr_"), link)
        self.page.goto(link)
        expect(self.page.locator(".who")).to_have_text(f"uid {os.getuid()}")
        self.assertTrue("ldr_" not in self.page.url)
        with self.page.expect_request("**/v1/stats") as used:
            self.open("live")
        token = used.value.headers["authorization"].removeprefix("Bearer ")
        other = self.context.new_page()
        other.goto(link)
        expect(other.get_by_role("alert")).to_contain_text("was used")
        # It is not the token of anything else.
        self.assertEqual(self.status(token), 200)
        self.assertTrue(self.status(link.partition("=")[2]) in (401, 429))
        self.click("Log out")
        expect(self.page.get_by_label("Token")).to_be_visible()
        self.assertTrue(self.status(token) in (401, 429))

    def status(self, token: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stores", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status

    def test_reader(self) -> None:
        self.log_in("reader")
        # It isn't offered what the server would refuse.
        pages = [("stores",), ("store", "films", "entries"), ("store", "films", "entries", "other/1"), ("store", "films", "indexes")]
        for names in pages:
            self.open(*names)
            expect(self.page.locator("main h1")).to_be_visible()
            expect(self.page.locator(".facts", has_text="Loading")).to_have_count(0)
            for name in ["Edit", "Delete", "New ", "Upload", "Expiry", "Drop"]:
                expect(self.page.get_by_role("button", name=name)).to_have_count(0)
        # Who has lost the right to write since is told so.
        self.page.route("**/v1/whoami", lambda route: route.fulfill(json={"rights": [{"right": "admin"}]}))
        self.open("store", "films", "entries", "other/1")
        self.click("Edit")
        self.page.locator("textarea.editor").fill("changed")
        self.click("Save")
        expect(self.page.get_by_role("alert")).to_contain_text("may not")
        self.click("Cancel")
        self.click("Delete…")
        self.click("Delete", "dialog")
        expect(self.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("may not")
        self.page.keyboard.press("Escape")
        self.open("live")
        expect(self.page.get_by_text("may not").first).to_be_visible()
        with self.store() as store:
            self.assertEqual(store.get("other/1").value, b"value")

    def test_tenant(self) -> None:
        self.log_in("tenant")
        self.open("store", "films", "entries")
        # What it may read is shown at once.
        expect(self.page.get_by_label("Prefix of keys")).to_have_value("tenant/")
        expect(self.page.get_by_role("tree").get_by_role("treeitem")).to_have_count(5)
        expect(self.page.get_by_text("5 entries that begin with tenant/")).to_be_visible()
        for prefix in ["", "other/"]:
            self.page.get_by_label("Prefix of keys").fill(prefix)
            self.page.get_by_label("Prefix of keys").press("Enter")
            expect(self.page.get_by_text("may not").first).to_be_visible()
        expect(self.page.get_by_role("tree").get_by_role("treeitem")).to_have_count(0)
        self.open("store", "films", "entries", "other/1")
        expect(self.page.get_by_text("may not").first).to_be_visible()


ATTACK = """<!doctype html><title>Another site</title><iframe name="frame"></iframe>
<script>
const [http, native, resp] = [%d, %d, %d];
const target = (port, host = "127.0.0.1") => `http://${host}:${port}`;
window.results = [];
async function attempt(name, action) {
  let outcome;
  try { outcome = await action(); } catch (error) { outcome = `failed: ${error}`; }
  window.results.push([name, String(outcome)]);
}
const entry = "/v1/stores/films/entries/victim";
window.done = (async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    const base = target(http, host);
    for (const path of ["/v1/stores", entry, "/v1/whoami", "/metrics", "/openapi.json"]) {
      await attempt(`read ${path}`, async () => (await fetch(base + path)).text());
      await attempt(`read blindly ${path}`, async () => (await fetch(base + path, { mode: "no-cors" })).text());
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
      for (const path of ["/v1/stores/films/update", "/v1/stores/films/delete", "/v1/stores/films/apply"]) {
        const body = JSON.stringify({ selector: {}, delete: true, keys: ["victim"], operations: [{ delete: "victim" }] });
        await attempt(`post ${type} ${path}`, async () => (await fetch(base + path, { method: "POST", mode: "no-cors", headers: { "Content-Type": type }, body })).text());
      }
    }
    await attempt("put", async () => (await fetch(base + entry, { method: "PUT", headers: { "X-Larder": "1" }, body: "owned" })).text());
    await attempt("delete", async () => (await fetch(base + entry, { method: "DELETE", headers: { "X-Larder": "1" } })).text());
    await attempt("beacon", () => navigator.sendBeacon(base + "/v1/stores/films/delete", '{"keys":["victim"]}'));
    for (const path of ["/", entry, "/console/main.js"]) {
      await attempt(`image ${path}`, () => new Promise((resolve) => {
        const image = new Image();
        image.onload = () => resolve("loaded");
        image.onerror = () => resolve("failed: image");
        image.src = base + path;
      }));
      await attempt(`script ${path}`, () => new Promise((resolve) => {
        const script = document.createElement("script");
        script.onload = () => resolve("loaded");
        script.onerror = () => resolve("failed: script");
        script.src = base + path;
        document.head.append(script);
      }));
    }
    await attempt("frame", () => new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.onload = () => {
        let text;
        try { text = frame.contentDocument ? "readable" : "failed: opaque"; } catch { text = "failed: opaque"; }
        resolve(text);
      };
      frame.src = base + "/";
      document.body.append(frame);
    }));
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", action: base + "/v1/stores/films/delete", target: "frame", enctype: "text/plain" });
    const input = document.createElement("input");
    [input.name, input.value] = ['{"keys":["victim"], "x":"', '"}'];
    form.append(input);
    document.body.append(form);
    form.submit();
    for (const port of [http, native, resp]) {
      await attempt(`socket ${port}`, () => new Promise((resolve) => {
        const socket = new WebSocket(`ws://${host}:${port}/`);
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("failed: socket");
        setTimeout(() => resolve("failed: timeout"), 3000);
      }));
    }
    for (const port of [native, resp]) {
      await attempt(`other port ${port}`, async () => (await fetch(target(port, host), { method: "POST", mode: "no-cors", body: "FLUSHALL\\r\\nDEL victim\\r\\n" })).text());
    }
  }
  return true;
})();
</script>"""


class OtherSitesTests(ConsoleCase):
    """Other sites, and names that lead to this machine, can neither read nor change anything."""

    options = ["--store", "films=memory", "--listen", "tcp:127.0.0.1:0", "--listen", "resp:127.0.0.1:0"]
    arguments = ["--host-resolver-rules=MAP evil.test 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"]

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.put("victim", b"secret")

    def tearDown(self) -> None:
        # The browser says a lot about what it has blocked.
        self.assertEqual([flaw for flaw in self.flaws if flaw.startswith("dialog")], [])
        with self.store() as store:
            self.assertEqual(store.get("victim").value, b"secret")
            self.assertEqual(store.count(), 1)

    def test_another_origin(self) -> None:
        attack = (ATTACK % tuple(self.ports)).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(attack)

            def log_message(self, *arguments: object) -> None:
                pass

        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        self.page.goto(f"http://evil.test:{site.server_port}/")
        self.page.evaluate("window.done")
        outcomes = self.page.evaluate("window.results")
        self.assertTrue(len(outcomes) > 60, len(outcomes))
        # An opaque response has no text, and a beacon was only queued.
        learned = [
            outcome for outcome in outcomes if not outcome[1].startswith("failed") and outcome[1] != "" and outcome[0] != "beacon"
        ]  # fmt: skip
        self.assertEqual(learned, [])
        self.page.wait_for_timeout(500)

    def test_rebound_name(self) -> None:
        for path in ["", "console/main.js", "v1/stores", "v1/stores/films/entries/victim", "openapi.json", "metrics"]:
            response = self.page.goto(f"http://evil.test:{self.port}/{path}")
            self.assertEqual(response.status, 421, path)
            self.assertTrue("secret" not in self.page.content())
        # A page that was loaded before the name has led to this machine has the origin of what it asks for.
        self.page.route("**/page", lambda route: route.fulfill(body="<p>A page</p>", content_type="text/html"))
        self.page.goto(f"http://evil.test:{self.port}/page")
        for method in ["GET", "PUT", "DELETE"]:
            status = self.page.evaluate(
                "async (method) => (await fetch('/v1/stores/films/entries/victim', { method, headers: { 'X-Larder': '1' } })).status",
                method,
            )  # fmt: skip
            self.assertEqual(status, 421)

    def test_links_from_elsewhere(self) -> None:
        """A link on another site may lead to the console, but not be followed into its data."""
        self.page.goto("data:text/html,<a>x</a>")
        self.page.evaluate("(url) => { location.href = url }", self.url)
        self.page.wait_for_selector("header")

"""Access rules for real users and groups, as the kernel reports them to larderd."""

from __future__ import annotations

import grp
import json
import os
import pwd
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from larder import Client, LarderError, Outcome
from larder_wire import Code, Operation, Write
from service_case import CONFIGURATION, Service, ServiceCase

NOBODY = pwd.getpwnam("nobody").pw_uid
DAEMON = pwd.getpwnam("daemon").pw_uid
NOGROUP = grp.getgrnam("nogroup").gr_gid
USERS = grp.getgrnam("users").gr_gid


@contextmanager
def acting_as(user: int, group: int = NOGROUP, others: tuple[int, ...] = ()) -> Iterator[None]:
    """Acts as this user within the context: the kernel reports the effective user of a connecting client."""
    before = os.getgroups()
    os.setgroups(others)
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


class AccessChecks(ServiceCase):
    def setUp(self) -> None:
        if os.geteuid():
            self.skipTest("only root can act as other users")
        super().setUp()

    def serve(self, *rules: str) -> Service:
        self.folder.chmod(0o755)
        self.write(*rules)
        service = self.start()
        (self.folder / "s").chmod(0o666)
        return service

    def write(self, *rules: str) -> None:
        text = CONFIGURATION.format(folder=self.folder)
        # Rules bind root, too, as whom the tests look at the server.
        rules = ("user:root=admin", *rules)
        (self.folder / "larderd.yaml").write_text(text + "access:\n" + "".join(f"- {rule}\n" for rule in rules))

    def client(self, service: Service, user: int, group: int = NOGROUP, *others: int, credit: int = 1 << 20) -> Client:
        with acting_as(user, group, others):
            client = Client(service.addresses[0], timeout=20, credit=credit)
        self.addCleanup(client.close)
        return client

    def assertRefused(self, message: str, call: object, *arguments: object) -> None:
        with self.assertRaises(LarderError) as caught:
            call(*arguments)
        self.assertEqual((caught.exception.code, caught.exception.message), (Code.notPermitted, message))

    def test_users_groups_and_supplementary_groups(self) -> None:
        service = self.serve("user:nobody=read", "group:users=write", f"group:{DAEMON}=admin")
        nobody = f"user nobody (uid {NOBODY})"
        reader = self.client(service, NOBODY)
        self.assertEqual(reader.open("sessions").count(), 0)
        self.assertIn("uptime_milliseconds", reader.stats())
        self.assertRefused(f"{nobody} may not write to store sessions", reader.open("sessions").put, "a", b"1")
        self.assertRefused(f"{nobody} may not create store new", reader.create, "new")
        reader.ping()
        for writer in (self.client(service, DAEMON, USERS), self.client(service, 4_711, NOGROUP, 5_000, USERS)):
            writer.open("sessions").put("a", b"1")
            with self.assertRaises(LarderError):
                writer.drop("sessions")
        # Rules are cumulative, and a client may have hundreds of groups.
        many = self.client(service, NOBODY, NOGROUP, *range(100_000, 100_500), DAEMON)
        many.create("new")
        many.open("new").put("a", b"1")
        many.drop("new")
        with service.client() as root:
            root.create("of-root")

    def test_clients_without_a_rule_are_refused_and_disconnected(self) -> None:
        service = self.serve("user:daemon=read")
        message = f"user nobody (uid {NOBODY}) may not use this server"
        self.assertRefused(message, self.client, service, NOBODY)
        self.assertRefused("uid 4711 may not use this server", self.client, service, 4_711)
        self.assertRefused("a TCP client may not use this server", service.client, 1)
        self.assertIn("a TCP socket refuses all clients, because access has no rule for it", service.log())
        with service.client() as root:
            end = time.monotonic() + 10
            while root.stats()["connections"] > 1 and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(root.stats()["connections"], 1)

    def test_rules_bind_root(self) -> None:
        service = self.serve()
        service.client().close()
        service.notices.wait_for("READY", "1")
        text = CONFIGURATION.format(folder=self.folder)
        service.configuration.write_text(text + "roles:\n- readers=user:root+user:nobody\naccess:\n- role:readers=read\n")
        self.assertTrue(service.reload()["STATUS"].startswith("serving on "))
        with service.client() as root:
            self.assertRefused("user root (uid 0) may not create store new", root.create, "new")
            self.assertEqual(root.whoami()["rights"], [{"right": "read"}])
        service.configuration.write_text(text + "access:\n- user:daemon=read\n")
        service.reload()
        self.assertRefused("user root (uid 0) may not use this server", service.client)

    def test_rights_to_some_keys(self) -> None:
        service = self.serve("user:nobody=write:orders/eu:*", "group:users=read:orders/us:*")
        with service.client() as root:
            root.open("orders").put_many([Write("eu:1", b"1"), Write("us:1", b"1"), Write("us:2", b"1")])
            decision = root.check_rules(user=NOBODY, groups=[NOGROUP], operation="put", store="orders", key="eu:1")
            rule = f"user:{NOBODY}=write:orders/eu:*"
            self.assertEqual([(answer["permitted"], answer["rule"], answer["number"]) for answer in decision], [(True, rule, 2)])
        client = self.client(service, NOBODY, NOGROUP, USERS)
        self.assertEqual([(store.name, store.entries) for store in client.stores()], [("orders", 3)])
        orders = client.open("orders")
        orders.put("eu:2", b"1")
        self.assertEqual((orders.count(b"eu:"), orders.count(b"us:")), (2, 2))
        refused = f"user nobody (uid {NOBODY}) may not "
        self.assertRefused(f"{refused}read these keys of store orders", orders.count)
        self.assertRefused(f"{refused}write to these keys of store orders", orders.put, "us:1", b"2")
        self.assertRefused(f"{refused}write to these keys of store orders", orders.put_many, [Write("eu:1", b"2"), Write("us:1", b"2")])
        self.assertEqual(orders.get("eu:1").value, b"1")
        self.assertEqual([(store.name, store.entries) for store in self.client(service, NOBODY).stores()], [("orders", 2)])

    def test_rights_for_single_stores(self) -> None:
        service = self.serve("user:nobody=write:sessions", "user:nobody=admin:scratch", "unix=read:orders")
        nobody = f"user nobody (uid {NOBODY})"
        client = self.client(service, NOBODY)
        self.assertEqual({store.name for store in client.stores()}, {"orders", "sessions"})
        orders, sessions = client.open("orders"), client.open("sessions")
        sessions.put("a", b"1")
        self.assertEqual(orders.count(), 0)
        writes = {
            Operation.put: b"",
            Operation.put_many: b"",
            Operation.delete: b"",
            Operation.delete_many: b"",
            Operation.delete_all: b"",
        }
        for operation, body in writes.items():
            self.assertRefused(f"{nobody} may not write to store orders", client.request, operation, body, orders.handle)
        # Requests that arrive together are checked one by one.
        ids = [client.send(Operation.count, b"", handle) for handle in (orders.handle, sessions.handle)]
        refused = client.send(Operation.delete_all, b"", orders.handle)
        ids.append(client.send(Operation.count, b"", orders.handle))
        for id in ids:
            self.assertEqual(client.receive(id).outcome, Outcome.done)
        with self.assertRaises(LarderError):
            client.receive(refused)
        self.assertRefused(f"{nobody} may not ask the server for stats", client.stats)
        self.assertEqual(orders.stats()["entries"], 0)
        self.assertRefused(f"{nobody} may not drop store sessions", client.drop, "sessions")
        # The error does not reveal whether the store exists.
        with service.client() as root:
            root.create("secret")
        for name in ("secret", "nothing"):
            self.assertRefused(f"{nobody} may not read store {name}", client.open, name)
            self.assertRefused(f"{nobody} may not create store {name}", client.create, name)
        client.create("scratch")
        client.open("scratch").put("a", b"1")
        client.drop("scratch")
        self.assertEqual(self.client(service, DAEMON).open("orders").count(), 0)

    def test_rules_for_single_listeners(self) -> None:
        service = self.serve("user:nobody=read@clients", f"unix=write:sessions@unix:{self.folder}/s", "tcp=read@remote")
        self.assertEqual(self.client(service, NOBODY).open("orders").count(), 0)
        self.client(service, NOBODY).open("sessions").put("a", b"1")
        self.client(service, DAEMON).open("sessions").put("a", b"1")
        with service.client(1) as remote:
            self.assertEqual(remote.open("orders").count(), 0)
            self.assertRefused("a TCP client may not write to store orders", remote.open("orders").put, "a", b"1")
        self.assertNotIn("a TCP socket refuses all clients", service.log())
        command = [self.server.with_name("larder"), "--server", service.addresses[1]]
        result = subprocess.run([*command, "put", "orders", "a", "1"], capture_output=True, text=True, timeout=20)
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, "^larder: a TCP client may not write to store orders; nothing was changed; run it as a user with that right")
        self.assertEqual(subprocess.run([*command, "count", "orders"], capture_output=True, timeout=20).stdout, b"0\n")

    def test_a_rule_without_a_matching_socket_prevents_the_start(self) -> None:
        for rule, complaint in (
            ("unix=read@client", "no listener is called 'client'; the listeners are clients (unix:"),
            ("user:nobody=read@remote", "'remote' is TCP: its rules begin with principal or tcp"),
            ("tcp=read@clients", "'clients' is a Unix socket"),
        ):
            service = self.serve(rule)
            with self.assertRaises(LarderError):
                service.client()
            self.assertEqual(service.process.wait(timeout=10), 78)
            self.assertIn(complaint, service.log())

    def test_a_reload_revokes_rights_of_open_connections(self) -> None:
        service = self.serve("user:nobody=write", "user:daemon=read")
        with service.client() as root:
            orders = root.open("orders")
            orders.put_many([Write(f"{number}", bytes(1_000)) for number in range(1_000)])
        nobody = self.client(service, NOBODY, credit=1_000)
        other = self.client(service, DAEMON)
        stores = {name: nobody.open(name) for name in ("orders", "sessions")}
        other.open("orders").count()
        stream = stores["orders"].all()
        stream.next_frame()
        service.notices.wait_for("READY", "1")
        self.write("user:nobody=read:sessions", "user:daemon=read@nowhere")
        self.assertIn("no listener is called 'nowhere'", service.reload()["STATUS"])
        stores["sessions"].put("a", b"1")
        self.write("user:nobody=read:sessions")
        self.assertTrue(service.reload()["STATUS"].startswith("serving on "))
        self.assertIn('reloaded the configuration changed=access', service.log())
        me = f"user nobody (uid {NOBODY})"
        self.assertRefused(f"{me} may not read store orders", stream.next_frame)
        self.assertRefused(f"{me} may not read store orders", stores["orders"].count)
        self.assertRefused(f"{me} may not write to store sessions", stores["sessions"].put, "a", b"2")
        self.assertEqual(stores["sessions"].get("a").value, b"1")
        self.assertRefused(f"user daemon (uid {DAEMON}) may not use this server", other.ping)
        self.write("user:nobody=admin")
        service.reload()
        stores["orders"].delete_all()
        self.assertNotIn("access no longer has any rules", service.log())
        service.configuration.write_text(CONFIGURATION.format(folder=self.folder))
        service.reload()
        self.assertIn("every client that can connect now has all rights, because access no longer has any rules", service.log())

    def test_without_rules_every_client_has_all_rights(self) -> None:
        service = self.serve("user:daemon=read")
        with service.client():
            service.notices.wait_for("READY", "1")
            (self.folder / "larderd.yaml").write_text(CONFIGURATION.format(folder=self.folder))
            service.reload()
            self.client(service, NOBODY).create("new")
            with service.client(1) as remote:
                remote.drop("new")

    def test_the_audit_is_written_to_a_file_and_survives_its_rotation(self) -> None:
        audit = self.folder / "audit.json"
        service = self.serve("user:nobody=read")
        with service.configuration.open("a") as file:
            file.write(f"audit: {audit}\n")
        with service.client() as root:
            root.create("new")
            root.open("new").delete_all()
            with self.assertRaises(LarderError):
                self.client(service, NOBODY).drop("new")
            service.notices.wait_for("READY", "1")
            # Nobody waits for the audit.
            end = time.monotonic() + 20
            while audit.read_text().count("\n") < 5 and time.monotonic() < end:
                time.sleep(0.01)
            audit.rename(self.folder / "audit.1")
            service.reload()
            root.drop("new")
        self.assertEqual(service.stop(), 0)
        lines = [[json.loads(line) for line in path.read_text().splitlines()] for path in (self.folder / "audit.1", audit)]
        events = [[(event["event"], event["outcome"]) for event in lines] for lines in lines]
        self.assertEqual(events[0], [
            ("authenticated", "done"), ("store-created", "done"), ("store-emptied", "done"), ("authenticated", "done"),
            ("refused", "failed"),
        ])
        self.assertEqual(events[1], [("reloaded", "done"), ("store-dropped", "done")])
        refused = lines[0][4]
        self.assertEqual((refused["user"], refused["process"], refused["reason"]), (NOBODY, os.getpid(), "drop store new"))
        self.assertRegex(refused["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ$")
        self.assertEqual(audit.stat().st_mode & 0o777, 0o640)

    def test_without_an_audit_the_log_has_what_administrators_do(self) -> None:
        service = self.serve()
        with service.client() as root:
            root.create("new")
            root.open("new").delete_all()
            root.drop("new")
        self.assertEqual(service.stop(), 0)
        for message in ("created a store store=new object=memory", "deleted all entries of a store store=new", "dropped a store store=new"):
            self.assertIn(message, service.log())

    def test_an_audit_that_cannot_be_written_prevents_the_start(self) -> None:
        service = self.serve()
        with service.configuration.open("a") as file:
            file.write(f"audit: {self.folder}/nowhere/audit.json\n")
        with self.assertRaises(LarderError):
            service.client()
        service.process.wait(timeout=10)
        self.assertIn("audit.json: No such file or directory", service.log())

    def test_refusals_are_logged_at_a_limited_rate(self) -> None:
        service = self.serve("user:daemon=read")
        client = self.client(service, DAEMON)
        store = client.open("sessions")
        for _ in range(40):
            with self.assertRaises(LarderError):
                store.put("a", b"1")
        with self.assertRaises(LarderError):
            self.client(service, NOBODY)
        with self.assertRaises(LarderError):
            service.client(1)
        # All that it has logged is there once it has ended.
        self.assertEqual(service.stop(), 0)
        at = re.escape(f'listener="clients ({service.addresses[0]})"')
        who = re.escape(f'client="user daemon (uid {DAEMON})" action="write to store sessions"') + f" {at}"
        logged = re.findall(f"larderd: warning: refused a client {who} pid={os.getpid()} uid={DAEMON}\n", service.log())
        self.assertEqual(len(logged), 10)
        who = f'client="user nobody (uid {NOBODY})" action="use this server"'
        self.assertIn(f"refused a client {who}", service.log())
        self.assertIn('refused a client client="a TCP client" action="use this server" listener="remote (', service.log())
        self.assertIn("pid=- uid=-", service.log())
        self.assertIn("did not log further refusals count=30", service.log())

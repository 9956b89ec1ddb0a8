"""A crash test's client process that transfers money between the accounts of one store, as applies (Protocol/wire.md §6.11)."""

from __future__ import annotations

import json

import larder_wire as wire
from crash_process import ClientProcess, Figures
from larder import Client, LarderError, Store
from larder_wire import Check, Code, Entry, Operation, Update, Write


class Teller(ClientProcess):
    """Transfers money between accounts that all tellers share, and counts its transfers in the same steps.

    At any time, before and after every restart, the sum of all accounts is what it was. The count of each teller is at
    least the number of its acknowledged transfers, and at most the number of those that it has sent.
    """

    store_name = "bank"
    accounts = [f"account{number:02}" for number in range(12)]
    balance = 1_000
    total = len(accounts) * balance

    def __init__(self, number: int, address: str, seed: int) -> None:
        super().__init__(number, address, seed)
        self.counter = f"count{number}"
        self.acknowledged = 0
        self.sent = 0
        self.store: Store | None = None

    # Verification

    def verify(self, client: Client, figures: Figures) -> None:
        self.store = client.open(self.store_name)
        self.open_accounts()
        entry = self.read(figures)[-1]
        count = json.loads(entry.value)["n"] if entry else 0
        if not self.acknowledged <= count <= self.sent:
            figures.violations.append(f"{count} transfers of {self.counter}, of {self.sent} with {self.acknowledged} acknowledged")
        figures.survived += count - self.acknowledged
        self.acknowledged = self.sent = count

    def verify_again(self, client: Client, figures: Figures) -> None:
        self.verify(client, figures)

    def open_accounts(self) -> None:
        """Creates all accounts in one step. One of the tellers does so, once."""
        document = json.dumps({"balance": self.balance}).encode()
        try:
            self.store.apply([Write(account, document, if_absent=True) for account in self.accounts])
        except LarderError as error:
            if error.code != Code.conditionFailed:
                raise

    def read(self, figures: Figures) -> list[Entry | None]:
        """Reads all accounts and the own count at one point in time, and checks their sum."""
        entries = self.store.get_many([*self.accounts, self.counter])
        total = sum(json.loads(entry.value)["balance"] for entry in entries[:-1] if entry)
        if total != self.total:
            figures.violations.append(f"the sum of all accounts is {total} instead of {self.total}")
        return entries

    # Load

    def work(self, client: Client, figures: Figures) -> None:
        """Sends a few transfers, then waits for the replies."""
        entries = self.read(figures)
        ids = [self.send_transfer(client, entries) for _ in range(self.rng.choice((1, 1, 4, 16)))]
        for id in ids:
            try:
                wire.decode_integer(client.receive(id).body)
            except LarderError as error:
                if error.code != Code.conditionFailed:
                    raise
                # Another teller was faster.
                self.sent -= 1
                figures.conflicts += 1
                continue
            self.acknowledged += 1
            figures.transfers += 1

    def send_transfer(self, client: Client, entries: list[Entry | None]) -> int:
        """Sends a transfer: as increments, or as new values on condition that the accounts are as they were read."""
        payer, payee = self.rng.sample(range(len(self.accounts)), 2)
        amount = self.rng.randrange(1, 100)
        operations: list[Write | Update | Check] = [Update(self.counter, b'{"$inc":{"n":1}}', create=True)]
        if self.rng.random() < 0.5:
            # Now and then with so much text that the accounts are large, and are updated by a job.
            text = {"text": "x" * self.rng.choice((0, 10, 20_000, 40_000))} if self.rng.random() < 0.1 else {}
            for account, change in ((payer, -amount), (payee, amount)):
                update = {"$inc": {"balance": change}} | ({"$set": text} if text else {})
                operations.append(Update(self.accounts[account], json.dumps(update).encode()))
        else:
            for account, change in ((payer, -amount), (payee, amount)):
                entry = entries[account]
                document = json.dumps({"balance": json.loads(entry.value)["balance"] + change}).encode()
                operations += [Check(entry.key, if_revision=entry.revision), Write(entry.key, document)]
        self.sent += 1
        return client.send(Operation.apply, wire.encode_apply(operations), self.store.handle)

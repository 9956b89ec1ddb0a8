"""A plugin of pytest that lets the random tests of fakeredis compare a server with a part of the commands.

A command that the server lacks is left out. What the server calls itself is not known to fakeredis, which is told that it is Redis.
"""

import pytest
import redis

# Transactions stay in one database here.
LEFT_OUT = {"select"}
# A value has at most 16 MiB here, and 512 MiB in Redis.
MAX_OFFSET = 1 << 20


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems() -> None:
    from test import conftest
    from test.test_hypothesis import base

    client = redis.Redis(port=6390, db=2)
    known = {name.decode() for name in client.execute_command("COMMAND LIST")} - LEFT_OUT
    client.close()
    details = conftest.ServerDetails
    conftest.ServerDetails = lambda kind, *versions: details("redis", *versions)
    compare = base.BaseMachine._compare

    def compare_known(machine, command) -> None:
        name = command.encode(command.args[0]).decode("utf-8", "replace").strip().lower() if command.args else ""
        if name == "setrange" and isinstance(command.args[2], int) and command.args[2] > MAX_OFFSET:
            return
        if name in known:
            compare(machine, command)

    base.BaseMachine._compare = compare_known

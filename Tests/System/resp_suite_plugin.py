"""A plugin of pytest that runs the tests of redis-py and valkey-py on a server with a part of the commands.

A test that fails because a command is unknown, or because there is only one database, is skipped, and says which. The others that
can't pass are in EXPECTED, each with its reason. `contrib/resp` checks how many tests are left.
"""

import re

import pytest

EXPECTED = {
    "test_auth": "sets a password with CONFIG SET",
    "test_client_setinfo": "needs another server at port 6379",
    "test_client_setinfo_with_driver_info": "needs another server at port 6379",
    "test_command": "counts the commands of Redis",
    "test_command_count": "counts the commands of Redis",
    "test_command_getkeys": "asks about commands that Larder lacks",
    "test_command_list": "counts the commands of Redis",
    "test_config_get_multi_params": "asks for parameters that Larder lacks",
    "test_config_resetstat": "expects figures that can be reset",
    "test_config_set": "changes a parameter",
    "test_config_set_multi_params": "changes parameters",
    "test_connection_error_raised_when_connection_dies": "uses CLIENT KILL",
    "test_module": "needs another server at port 6479",
    "test_module_loadex": "needs another server at port 6479",
    "test_mset_on_cluster_multiple_slots": "needs a cluster",
    "test_psync": "needs another server at port 6380",
    "test_pubsub_shardchannels_cluster": "needs a cluster",
    "test_pubsub_shardnumsub": "needs a cluster",
    "test_resubscribe_shard_channels_different_slots_same_node": "needs a cluster",
    "test_shard_channel_subscribe_unsubscribe_cluster": "needs a cluster",
    "test_slowlog_get": "changes a parameter",
    "test_slowlog_get_limit": "changes a parameter",
    "test_slowlog_length": "changes a parameter",
    "test_subscribe_property_with_shard_channels_cluster": "needs a cluster",
}
MISSING = re.compile(r"unknown (?:sub)?command '?([\w-]+)|DB index is out of range|runs only the scripts|CONFIG SET can change")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed or call.excinfo is None:
        return
    reason = None
    if found := MISSING.search(str(call.excinfo.value)):
        reason = found.group(0)
    else:
        reason = EXPECTED.get(item.originalname or item.name)
    if reason:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")

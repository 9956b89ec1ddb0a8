// libsystemd, found by pkg-config.
#pragma once

#if !__has_include(<systemd/sd-daemon.h>)
#error "libsystemd is missing: sudo apt-get install libedit-dev libpq-dev libsqlite3-dev libssl-dev libsystemd-dev libyaml-dev pkg-config zlib1g-dev"
#endif
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

// The client library of PostgreSQL, found by pkg-config.
#pragma once

#if !__has_include(<libpq-fe.h>)
#error "libpq is missing: sudo apt-get install libedit-dev libpq-dev libsqlite3-dev libssl-dev libsystemd-dev libyaml-dev pkg-config zlib1g-dev"
#endif
#include <libpq-fe.h>

#pragma once

#if !__has_include(<yaml.h>)
#error "LibYAML is missing: sudo apt-get install libedit-dev libpq-dev libsqlite3-dev libssl-dev libsystemd-dev libyaml-dev pkg-config zlib1g-dev"
#endif
#include <yaml.h>

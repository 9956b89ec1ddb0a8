#pragma once

#if !__has_include(<yaml.h>)
#error "LibYAML is missing: sudo apt-get install libedit-dev libsystemd-dev libyaml-dev libsqlite3-dev pkg-config"
#endif
#include <yaml.h>

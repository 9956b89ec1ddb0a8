// libsystemd, found by pkg-config.
#pragma once

#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#pragma once

#if !__has_include(<zlib.h>)
#error "zlib is missing: sudo apt-get install libedit-dev libpq-dev libsqlite3-dev libssl-dev libsystemd-dev libyaml-dev pkg-config zlib1g-dev"
#endif
#include <zlib.h>

// `deflateInit2` is a macro, which Swift doesn't import.
static inline int CZlib_deflateInit2(
    z_stream *stream, int level, int method, int windowBits, int memoryLevel, int strategy) {
  return deflateInit2(stream, level, method, windowBits, memoryLevel, strategy);
}

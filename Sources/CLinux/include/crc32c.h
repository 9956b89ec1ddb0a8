// CRC32C (Castagnoli), RFC 3720 appendix B.4, with the processor's instruction where it has one.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Continues `crc`, which is 0 in the beginning, over more bytes.
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);

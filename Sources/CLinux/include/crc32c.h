// CRC32C (Castagnoli), RFC 3720 appendix B.4. Uses the processor's instruction if there is one.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Returns the checksum of the bytes with the checksum `crc`, 0 for none, followed by more bytes.
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);

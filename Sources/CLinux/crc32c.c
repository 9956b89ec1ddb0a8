#include "crc32c.h"

#include <string.h>

static uint32_t table[256];

static uint32_t in_software(uint32_t crc, const uint8_t *bytes, size_t count) {
  while (count--) crc = table[(crc ^ *bytes++) & 0xFF] ^ crc >> 8;
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t in_hardware(uint32_t crc, const uint8_t *bytes, size_t count) {
  uint64_t wide = crc;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = (uint32_t)wide;
  while (count--) crc = __builtin_ia32_crc32qi(crc, *bytes++);
  return crc;
}
#endif

static uint32_t (*chosen)(uint32_t, const uint8_t *, size_t) = in_software;

__attribute__((constructor)) static void choose(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    table[byte] = crc;
  }
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) chosen = in_hardware;
#endif
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count) { return ~chosen(~crc, bytes, count); }

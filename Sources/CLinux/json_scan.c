#include "json_scan.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Which of 64 bytes are what: bit n is about byte n.
struct block {
  uint64_t quotes, backslashes, opening, closing;
};

// In ASCII, both opening brackets differ in one bit only, as do both closing ones.
#define BRACKET_BIT 0x20

#if defined(__x86_64__)
static inline __attribute__((always_inline)) struct block classify(const uint8_t *bytes) {
  struct block block = {0, 0, 0, 0};
  for (int part = 0; part < 4; part++) {
    __m128i text = _mm_loadu_si128((const __m128i *)(bytes + 16 * part));
    __m128i folded = _mm_or_si128(text, _mm_set1_epi8(BRACKET_BIT));
#define MATCHES(vector, byte) \
  ((uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(vector, _mm_set1_epi8(byte))) << (16 * part))
    block.quotes |= MATCHES(text, '"');
    block.backslashes |= MATCHES(text, '\\');
    block.opening |= MATCHES(folded, '{');
    block.closing |= MATCHES(folded, '}');
#undef MATCHES
  }
  return block;
}

__attribute__((target("avx2"))) static inline struct block classify_wide(const uint8_t *bytes) {
  struct block block = {0, 0, 0, 0};
  for (int part = 0; part < 2; part++) {
    __m256i text = _mm256_loadu_si256((const __m256i *)(bytes + 32 * part));
    __m256i folded = _mm256_or_si256(text, _mm256_set1_epi8(BRACKET_BIT));
#define MATCHES(vector, byte) \
  ((uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(vector, _mm256_set1_epi8(byte))) << (32 * part))
    block.quotes |= MATCHES(text, '"');
    block.backslashes |= MATCHES(text, '\\');
    block.opening |= MATCHES(folded, '{');
    block.closing |= MATCHES(folded, '}');
#undef MATCHES
  }
  return block;
}
#else
static inline struct block classify(const uint8_t *bytes) {
  struct block block = {0, 0, 0, 0};
  for (int index = 0; index < 64; index++) {
    block.quotes |= (uint64_t)(bytes[index] == '"') << index;
    block.backslashes |= (uint64_t)(bytes[index] == '\\') << index;
    block.opening |= (uint64_t)((bytes[index] | BRACKET_BIT) == '{') << index;
    block.closing |= (uint64_t)((bytes[index] | BRACKET_BIT) == '}') << index;
  }
  return block;
}
#endif

// Returns which bytes are escaped: those that follow an odd number of backslashes. `is_escaped` says whether the first
// byte is, and then whether the first one of the next block is.
static inline __attribute__((always_inline)) uint64_t escaped(uint64_t backslashes, bool *is_escaped) {
  const uint64_t even = 0x5555555555555555;
  backslashes &= ~(uint64_t)*is_escaped;
  uint64_t following = backslashes << 1 | *is_escaped;
  // A run that begins at an odd offset carries into the byte after its end. The carry moves it by one bit, so that the
  // bytes at even offsets after it are the escaped ones.
  uint64_t odd_starts = backslashes & ~even & ~following, sums;
  *is_escaped = __builtin_add_overflow(odd_starts, backslashes, &sums);
  return (even ^ (sums << 1)) & following;
}

// Returns for each bit whether an odd number of bits up to it are set.
static inline __attribute__((always_inline)) uint64_t parity_so_far(uint64_t bits) {
  for (int distance = 1; distance < 64; distance *= 2) bits ^= bits << distance;
  return bits;
}

static inline __attribute__((always_inline)) size_t container_end(
    const uint8_t *text, size_t start, size_t end, size_t depth, struct block (*classify)(const uint8_t *)) {
  uint64_t in_string = 0;
  bool is_escaped = false;
  for (size_t offset = start; offset < end; offset += 64) {
    uint8_t rest[64];
    const uint8_t *bytes = text + offset;
    if (end - offset < 64) {
      memset(rest, ' ', sizeof rest);
      memcpy(rest, bytes, end - offset);
      bytes = rest;
    }
    struct block block = classify(bytes);
    uint64_t quotes = block.quotes;
    if (block.backslashes || is_escaped) quotes &= ~escaped(block.backslashes, &is_escaped);
    // From an opening quote to the byte before the closing one.
    uint64_t strings = parity_so_far(quotes) ^ in_string;
    in_string = (uint64_t)((int64_t)strings >> 63);
    uint64_t opening = block.opening & ~strings, closing = block.closing & ~strings;
    if ((size_t)__builtin_popcountll(closing) < depth) {
      depth += __builtin_popcountll(opening);
      depth -= __builtin_popcountll(closing);
      continue;
    }
    for (uint64_t brackets = opening | closing; brackets; brackets &= brackets - 1) {
      if (opening & (brackets & -brackets)) {
        depth++;
      } else if (--depth == 0) {
        return offset + (size_t)__builtin_ctzll(brackets) + 1;
      }
    }
  }
  return end;
}

static size_t narrow_container_end(const uint8_t *text, size_t start, size_t end, size_t depth) {
  return container_end(text, start, end, depth, classify);
}

static size_t (*chosen)(const uint8_t *, size_t, size_t, size_t) = narrow_container_end;

#if defined(__x86_64__)
__attribute__((target("avx2,popcnt,bmi"))) static size_t wide_container_end(
    const uint8_t *text, size_t start, size_t end, size_t depth) {
  return container_end(text, start, end, depth, classify_wide);
}

__attribute__((constructor)) static void choose(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi")) {
    chosen = wide_container_end;
  }
}
#endif

size_t json_container_end(const uint8_t *text, size_t start, size_t end, size_t depth) {
  return chosen(text, start, end, depth);
}

size_t json_quote_or_backslash(const uint8_t *text, size_t start, size_t end) {
  size_t offset = start;
#if defined(__x86_64__)
  for (; offset + 16 <= end; offset += 16) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(text + offset));
    __m128i matches =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    unsigned bits = (unsigned)_mm_movemask_epi8(matches);
    if (bits) return offset + (size_t)__builtin_ctz(bits);
  }
#endif
  while (offset < end && text[offset] != '"' && text[offset] != '\\') offset++;
  return offset;
}

// Finds structure in JSON text that is known to be valid, many bytes at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Returns where the array or object ends in which `start` is, `depth` levels below the one that ends: the offset after
// its closing bracket. Returns `end` if it has none. No string has begun before `start` and not ended.
size_t json_container_end(const uint8_t *text, size_t start, size_t end, size_t depth);

// Returns the offset of the next quote or backslash; `end` if there is none.
size_t json_quote_or_backslash(const uint8_t *text, size_t start, size_t end);

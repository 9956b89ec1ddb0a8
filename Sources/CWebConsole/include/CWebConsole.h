// The files of the web console, which are part of the program.
#pragma once

#include <stddef.h>

struct CWebConsole_File {
  // Below the root of the server, without the first slash.
  const char *path;
  const unsigned char *bytes;
  size_t size;
};

// Returns the files. The last one is followed by one whose path is null.
const struct CWebConsole_File *CWebConsole_files(void);
// Protocol/http.yaml
extern const struct CWebConsole_File CWebConsole_description;

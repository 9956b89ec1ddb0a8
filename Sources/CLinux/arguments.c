#include "arguments.h"

static int count;
static char **arguments;

// glibc calls constructors with the arguments of main.
__attribute__((constructor)) static void keep_arguments(int argc, char **argv) {
  count = argc;
  arguments = argv;
}

int process_argument_count(void) { return arguments ? count : 0; }

char **process_arguments(void) { return arguments; }

// The arguments of main, which don't depend on /proc or the environment's place in memory.
#pragma once

// Returns the number of arguments with the program's name; 0 if they are unknown.
int process_argument_count(void);

// Returns the arguments, which exist for as long as the process.
char **process_arguments(void);

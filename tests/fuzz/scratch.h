/* A folder in memory for targets whose subject reads files; it goes when the program ends. */
#ifndef FUZZ_SCRATCH_H
#define FUZZ_SCRATCH_H

#include <stddef.h>

/* The folder's path, made at the first call. */
const char *scratch_folder(void);
/* Writes a file into it and returns its path in `path`. */
void scratch_write(const char *name, const void *data, size_t size, char path[4096]);

#endif

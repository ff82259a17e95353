/* Compiles CUDA C for the emulator. */
#ifndef TEST_CUDA_EMULATED_BUILD_H
#define TEST_CUDA_EMULATED_BUILD_H

#include <stdbool.h>
#include <stddef.h>

enum { EMU_NAME = 160, EMU_NAMES = 4096 };

/* The kernels of a text in order: returns how many, at most EMU_NAMES. */
size_t emu_kernels_of(const char *text, char (*names)[EMU_NAME]);
/* A shared library whose kernels emu_launch takes (NAME__call). `log`, allocated, gets what the
 * compiler said. False: it does not compile. */
bool emu_build(const char *text, unsigned arch, const char *library, char **log);
/* The whole of a file, allocated, with a 0 behind it; NULL. */
char *emu_read(const char *path, size_t *bytes);
/* A fresh folder for temporary files; and away with it and the files in it. */
bool emu_folder(char *path, size_t room);
void emu_folder_remove(const char *path);

#endif

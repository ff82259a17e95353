/* The host's compiler takes the text as C++, the emulator's header before it and an entry for each
 * __global__ function behind; in the checked build every load and store calls the emulator. */
#include "emulated_build.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

char *emu_read(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    size_t n = 0, room = 0;
    if (!f)
        return NULL;
    for (;;) {
        if (n + 1 >= room) {
            room = room ? 2 * room : 1 << 16;
            char *more = realloc(data, room);
            if (!more)
                break;
            data = more;
        }
        size_t got = fread(data + n, 1, room - n - 1, f);
        if (got == 0)
            break;
        n += got;
    }
    (void)fclose(f);
    if (data)
        data[n] = '\0';
    if (bytes)
        *bytes = n;
    return data;
}

bool emu_folder(char *path, size_t room) {
    const char *tmp = getenv("TMPDIR");
    return snprintf(path, room, "%s/emulated.XXXXXX", tmp && *tmp ? tmp : "/tmp") < (int)room &&
           mkdtemp(path);
}

void emu_folder_remove(const char *path) {
    DIR *dir = opendir(path);
    if (dir) {
        for (const struct dirent *e; (e = readdir(dir));)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
        (void)closedir(dir);
    }
    (void)rmdir(path);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

size_t emu_kernels_of(const char *text, char (*names)[EMU_NAME]) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, "__global__")) && n < EMU_NAMES;) {
        p += strlen("__global__");
        /* up to the name: what stands before the bracket of the parameters */
        const char *from = p, *to = p;
        for (; *p && *p != '{' && *p != ';'; p++) {
            if (is_word(*p)) {
                from = p;
                while (is_word(*p))
                    p++;
                to = p--;
            } else if (*p == '(') {
                size_t length = (size_t)(to - from);
                if (length == strlen("__launch_bounds__") &&
                    memcmp(from, "__launch_bounds__", length) == 0) {
                    while (*p && *p != ')')
                        p++;
                    if (!*p)
                        break;
                    continue;
                }
                if (length && length < EMU_NAME) {
                    memcpy(names[n], from, length);
                    names[n++][length] = '\0';
                }
                break;
            }
        }
    }
    return n;
}

static bool compile(const char *source, const char *arch, const char *library, const char *said) {
    const char *argv[32] = {EMU_COMPILER,
                            "-x",
                            "c++",
                            "-std=c++17",
                            "-O1",
                            "-g1",
                            "-w",
                            "-fPIC",
                            "-shared",
                            "-fno-strict-aliasing",
                            "-fno-builtin",
                            "-ffp-contract=off",
                            "-DPC_EMULATED=1",
                            arch,
                            "-include",
                            EMU_HEADER};
    int n = 16;
#ifdef EMU_CHECKED /* clang: every access calls the emulator */
    argv[n++] = "-fsanitize-coverage=bb,trace-loads,trace-stores";
    argv[n++] = "-fsanitize=alignment,bounds,shift-exponent,integer-divide-by-zero,"
                "signed-integer-overflow";
    argv[n++] = "-fsanitize-minimal-runtime";
    argv[n++] = "-fno-sanitize-link-runtime";
#endif
    argv[n++] = source;
    argv[n++] = "-x";
    argv[n++] = "none";
    argv[n++] = EMU_RUNTIME;
    argv[n++] = "-lm";
    argv[n++] = "-o";
    argv[n++] = library;
    posix_spawn_file_actions_t to;
    pid_t child;
    int status = 1;
    (void)posix_spawn_file_actions_init(&to);
    (void)posix_spawn_file_actions_addopen(&to, 2, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)posix_spawn_file_actions_adddup2(&to, 2, 1);
    /* posix_spawn's parameters are not const, and it does not write to them */
    int rc = posix_spawnp(&child, argv[0], &to, NULL, (char *const *)argv, environ);
    (void)posix_spawn_file_actions_destroy(&to);
    if (rc != 0)
        return false;
    while (waitpid(child, &status, 0) < 0)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool emu_build(const char *text, unsigned arch, const char *library, char **log) {
    char folder[128], source[160], said[160], define[64];
    *log = NULL;
    if (!emu_folder(folder, sizeof folder))
        return false;
    (void)snprintf(source, sizeof source, "%s/kernel.cu", folder);
    (void)snprintf(said, sizeof said, "%s/said", folder);
    (void)snprintf(define, sizeof define, "-D__CUDA_ARCH__=%u", arch * 10);
    char(*names)[EMU_NAME] = malloc((size_t)EMU_NAMES * EMU_NAME);
    size_t n = names ? emu_kernels_of(text, names) : 0;
    FILE *f = fopen(source, "w");
    bool good = f && fputs(text, f) >= 0;
    if (f) {
        (void)fputs("\n", f);
        for (size_t i = 0; i < n; i++)
            (void)fprintf(f, "EMU_KERNEL(%s)\n", names[i]);
        (void)fprintf(f, "extern \"C\" unsigned emu_arch(void) { return %u; }\n", arch);
        good &= fclose(f) == 0;
    }
    free(names);
    good = good && compile(source, define, library, said);
    *log = emu_read(said, NULL);
    emu_folder_remove(folder);
    return good;
}

/* Looks for a C compiler by running `cc --version`. What it prints is hashed, so that what another
 * version compiled is told from its own. */
#include "codegen/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TELLS = 4096 /* bytes of what it says of itself that count */ };

/* Hashes what comes through the pipe; the rest is read and forgotten. */
static po_hash hash_said(int fd) {
    char text[TELLS], rest[512];
    size_t size = 0;
    ssize_t n;
    do {
        bool full = size == sizeof text;
        n = read(fd, full ? rest : text + size, full ? sizeof rest : sizeof text - size);
        size += n > 0 && !full ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    return po_hash_bytes(text, size, (po_hash){0, 0});
}

/* Runs `cc --version`. An errno, or 0. */
static int try(const char *cc, po_hash *version) {
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        for (int fd = 0; fd < 3 && error == 0; fd++)
            error = fd == 1
                        ? posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
                        : posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
        char *args[3] = {(char *)(uintptr_t)cc, (char *)(uintptr_t) "--version", NULL};
        pid_t pid;
        if (error == 0)
            error = posix_spawnp(&pid, cc, &actions, NULL, args, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        ends[1] = -1;
        int state = 0;
        if (error == 0) {
            *version = hash_said(ends[0]);
            while (waitpid(pid, &state, 0) < 0 && error == 0)
                error = errno == EINTR ? 0 : errno;
        }
        if (error == 0 && (!WIFEXITED(state) || WEXITSTATUS(state) != 0))
            error = ENOEXEC;
    }
    close(ends[0]);
    if (ends[1] >= 0)
        close(ends[1]);
    return error;
}

po_status po_cc_check(po_ctx *ctx, const char *cc, po_hash *version) {
    static const char *const known[] = {"cc", "gcc", "clang"};
    po_hash unwanted;
    int error = ENOENT;
    if (!version)
        version = &unwanted;
    if (cc != NULL) {
        error = try(cc, version);
        return error == 0
                   ? PO_OK
                   : po_fail(ctx, PO_UNSUPPORTED, "the C compiler '%.300s' cannot be run (%s)", cc,
                             strerror(error));
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0] && error != 0; i++)
        error = try(known[i], version);
    return error == 0 ? PO_OK
                      : po_fail(ctx, PO_UNSUPPORTED,
                                "there is no C compiler on the path (cc, gcc or clang): install "
                                "one, or name it with --cc");
}

#include "codegen/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* Runs `cc --version`, unheard. An errno, or 0. */
static int try(const char *cc) {
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    int error = 0;
    for (int fd = 0; fd < 3 && error == 0; fd++)
        error = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    char *args[3] = {(char *)(uintptr_t)cc, (char *)(uintptr_t) "--version", NULL};
    pid_t pid;
    if (error == 0)
        error = posix_spawnp(&pid, cc, &actions, NULL, args, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return error;
    int state = 0;
    while (waitpid(pid, &state, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? 0 : ENOEXEC;
}

po_status po_cc_check(po_ctx *ctx, const char *cc) {
    static const char *const known[] = {"cc", "gcc", "clang"};
    int error = ENOENT;
    if (cc != NULL) {
        error = try(cc);
        return error == 0
                   ? PO_OK
                   : po_fail(ctx, PO_UNSUPPORTED, "the C compiler '%.300s' cannot be run (%s)", cc,
                             strerror(error));
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0] && error != 0; i++)
        error = try(known[i]);
    return error == 0 ? PO_OK
                      : po_fail(ctx, PO_UNSUPPORTED,
                                "there is no C compiler on the path (cc, gcc or clang): install "
                                "one, or name it with --cc");
}

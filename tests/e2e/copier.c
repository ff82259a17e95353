/* Stands in for petopt in the sabotage of faults.py: copies IN to OUT (argv[1], argv[3]) safely,
 * or, with BUG set, with one mistake. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef BUG
#define BUG 0
#endif
enum {
    LEAVES_TEMP = 1,
    IGNORES_FSYNC,
    WRITES_IN_PLACE,
    CRASHES_WITHOUT_MEMORY,
    SAYS_NOTHING,
    CERTIFIES_FIRST,
    FORGETS_CERTIFICATE
};

static char temp[4096];

static int fail(const char *what) {
    if (BUG != SAYS_NOTHING)
        perror(what);
    if (BUG != LEAVES_TEMP && BUG != WRITES_IN_PLACE)
        unlink(temp);
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    size_t room = 1 << 20;
    char *data = malloc(room);
    if (!data && BUG == CRASHES_WITHOUT_MEMORY)
        abort();
    if (!data)
        return fail("memory");
    int in = open(argv[1], O_RDONLY);
    ssize_t n = in < 0 ? -1 : read(in, data, room);
    if (n < 0)
        return fail("read");
    char cert[4096];
    snprintf(cert, sizeof cert, "%s.cert", argv[3]);
    if (BUG == CERTIFIES_FIRST && truncate(cert, 0) != 0)
        return fail("certificate");
    snprintf(temp, sizeof temp, BUG == WRITES_IN_PLACE ? "%s" : "%s.tmp", argv[3]);
    int out = open(temp, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0)
        return fail("open");
    if (write(out, data, (size_t)n) != n)
        return fail("write");
    if (fsync(out) != 0 && BUG != IGNORES_FSYNC)
        return fail("fsync");
    if (close(out) != 0)
        return fail("close");
    if (rename(temp, argv[3]) != 0)
        return fail("rename");
    if (BUG != FORGETS_CERTIFICATE)
        unlink(cert); /* of what was replaced */
    free(data);
    return 0;
}

/* Preloaded: no library can be opened while the program runs, as on a machine without the
 * inference runtime. */
#include <stddef.h>

void *dlopen(const char *path, int flags);
char *dlerror(void);

void *dlopen(const char *path, int flags) {
    (void)path;
    (void)flags;
    return NULL;
}

char *dlerror(void) {
    static char text[] = "no such library";
    return text;
}

/* Keeps each thread's schedstat open, so that a reading is one pread for each thread. */
#include "cost/waits.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void po_waits_open(po_waits *waits) {
    waits->n = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return;
    const struct dirent *entry;
    while (waits->n < PO_WAITS_MAX && (entry = readdir(tasks))) {
        char path[64];
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
            snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", entry->d_name) >=
                (int)sizeof path)
            continue;
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0)
            waits->files[waits->n++] = file;
    }
    closedir(tasks);
}

void po_waits_close(po_waits *waits) {
    for (uint32_t i = 0; i < waits->n; i++)
        close(waits->files[i]);
    waits->n = 0;
}

double po_waits_parse(const char *text) {
    char *end = NULL;
    strtoull(text, &end, 10);
    if (end == text)
        return 0;
    return 1e-9 * (double)strtoull(end, NULL, 10);
}

double po_waits_read(const po_waits *waits) {
    double sum = 0;
    for (uint32_t i = 0; i < waits->n; i++) {
        char text[128];
        ssize_t got = pread(waits->files[i], text, sizeof text - 1, 0);
        if (got <= 0)
            continue; /* the thread ended */
        text[got] = '\0';
        sum += po_waits_parse(text);
    }
    return sum;
}

/* Progress on standard error: one line that is written over on a terminal, plain lines now and then
 * elsewhere. */
#include "cli/cli.h"

#include <sys/ioctl.h>
#include <unistd.h>

/* Plain lines start late and come rarely: short runs print none. Seconds. */
static const double FIRST_PLAIN = 3, PLAIN_EVERY = 10, LINE_EVERY = 0.1;

static void format_line(char *line, size_t size, const po_progress *p) {
    char left[48] = "";
    if (p->seconds_left >= 1)
        snprintf(left, sizeof left, ", %.0f s left", p->seconds_left);
    snprintf(line, size, "[%3.0f %%%s] %s%s%s", 100 * p->fraction, left, p->stage,
             *p->what ? ": " : "", p->what);
}

/* Cut to `width` columns; continuation bytes of UTF-8 take none. */
static void cut(char *line, int width) {
    int column = 0;
    for (char *p = line; *p; p++) {
        if (((unsigned char)*p & 0xc0) == 0x80)
            continue;
        if (++column > width) {
            *p = '\0';
            return;
        }
    }
}

static void on_progress(void *user, const po_progress *progress) {
    po_terminal *t = user;
    po_watchdog_stage(progress->stage);
    if (t->quiet)
        return;
    double now = po_now();
    double wait = t->line ? LINE_EVERY : t->last > t->started ? PLAIN_EVERY : FIRST_PLAIN;
    if (now - t->last < wait)
        return;
    char line[PO_MESSAGE_MAX + 128];
    format_line(line, sizeof line, progress);
    if (t->line) {
        cut(line, t->width - 1);
        fprintf(stderr, "\r%s\033[K", line);
        t->shown = true;
    } else {
        fprintf(stderr, "petopt: %s\n", line);
    }
    fflush(stderr);
    t->last = now;
}

static void on_log(void *user, const char *line) {
    po_terminal_clear(user);
    fprintf(stderr, "petopt: %s\n", line);
}

static void on_dump(void *user, const char *stage, const char *text) {
    (void)stage;
    po_terminal_clear(user);
    fputs(text, stdout);
}

void po_terminal_init(po_terminal *t, const po_cli *cli, po_callbacks *callbacks) {
    *t = (po_terminal){.width = 80, .quiet = cli->quiet};
    t->started = t->last = po_now();
    struct winsize size;
    t->line = isatty(STDERR_FILENO) == 1;
    if (t->line && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        t->width = size.ws_col;
    callbacks->user = t;
    callbacks->dump = on_dump;
    callbacks->progress = on_progress;
    callbacks->log = cli->verbose ? on_log : NULL;
}

void po_terminal_clear(po_terminal *t) {
    if (t->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        t->shown = false;
    }
}

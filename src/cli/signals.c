#include "cli/cli.h"

#include <signal.h>
#include <unistd.h>

/* Handlers reach nothing but what lies here. */
static volatile sig_atomic_t seen;
static po_cancel *flag;

static void stop(int number) {
    seen = number;
    po_cancel_raise(flag);
    po_watchdog_hurry();
}

static void bus(int number) {
    static const char text[] =
        "petopt: a file that was being read became shorter; nothing was written\n";
    (void)number;
    _exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? PO_EXIT_FAILED : PO_EXIT_BAD);
}

void po_signals_install(po_cancel *cancel) {
    flag = cancel;
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action = (struct sigaction){.sa_handler = bus};
    sigaction(SIGBUS, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL); /* a closed pipe is an error of the write */
    sigaction(SIGXFSZ, &action, NULL); /* and so is a file-size limit */
}

int po_signal_seen(void) {
    return seen;
}

/* Signal handlers: a first signal raises the cancel flag, and a second ends the program. Where a
 * mapped file lost its end (SIGBUS) zeros are read, until the program has stopped in good order. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* Handlers reach nothing but what lies here. */
static volatile sig_atomic_t seen, short_file;
static po_cancel *flag;
static size_t page_size;

static void stop(int number) {
    seen = number;
    po_cancel_raise(flag);
    po_watchdog_hurry();
}

/* Memory of a mapped file that is not there any more: pages of zeros in its place let the program
 * go on, to stop in good order. What it makes of them is thrown away. */
static void bus(int number, siginfo_t *info, void *context) {
    (void)context;
    int error = errno;
    uintptr_t page = (uintptr_t)info->si_addr & ~((uintptr_t)page_size - 1);
    short_file = 1;
    po_cancel_raise(flag);
    if (info->si_code != BUS_ADRERR ||
        mmap((void *)page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
        signal(number, SIG_DFL); /* broken memory, or none: the access comes again */
    errno = error;
}

void po_signals_install(po_cancel *cancel) {
    flag = cancel;
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction was;
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    action = (struct sigaction){.sa_sigaction = bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL); /* a closed pipe is an error of the write */
    sigaction(SIGXFSZ, &action, NULL); /* and so is a file-size limit */
}

int po_signal_seen(void) {
    return seen;
}

bool po_signal_short_file(void) {
    return short_file != 0;
}

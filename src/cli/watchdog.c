/* A run that does not end by itself. Every search of the library asks for the time, and what may
 * hang for other reasons (the runtime, compilers, the proof) is a process of its own; should a part
 * of it hang all the same, the program takes over: it begins anew, in the same process, as `keep`,
 * which writes the model as it was read. Nothing else was verified by then: what is accepted is
 * followed by nothing but the proof. */
#include "base/folder.h"
#include "cli/cli.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Seconds beyond the run's own limit, and after Ctrl-C. */
static const double patience = 8;

enum { STAGE = 32, NUMBER = 12, FIXED = 4 /* words of the new command before its own */ };

/* Handlers reach nothing but what lies here. */
static struct {
    volatile sig_atomic_t armed;
    bool made; /* the timer */
    timer_t timer;
    char **command; /* NULL: nothing is to be written */
    char stage[STAGE], signal[NUMBER];
} dog;

static int number(void) {
    return SIGRTMIN + 1; /* alarm() is whoever started this program's */
}

static void write_number(char *to, int value) {
    char digits[NUMBER];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 && n < NUMBER - 1);
    while (n > 0)
        *to++ = digits[--n];
    *to = '\0';
}

static void bark(int got) {
    static const char text[] = "petopt: the run did not end in its time; it was given up\n";
    int seen = po_signal_seen();
    if (!dog.armed)
        return;
    dog.armed = 0;
    if (dog.command) {
        sigset_t own;
        sigemptyset(&own);
        sigaddset(&own, got);
        sigprocmask(SIG_UNBLOCK, &own, NULL);
        write_number(dog.signal, seen);
        execv("/proc/self/exe", dog.command);
        execv(dog.command[0], dog.command);
    }
    ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    _exit(seen || told < 0 ? 128 + seen : PO_EXIT_FAILED);
}

static void wind(double seconds) {
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * fmod(seconds, 1))}};
    if (dog.made)
        timer_settime(dog.timer, 0, &when, NULL);
}

/* "petopt keep SIGNAL STAGE" and what followed the program's name. */
static char **command_of(int argc, char **argv) {
    static char keep[] = "keep";
    char **words = calloc((size_t)argc + FIXED + 1, sizeof *words);
    int n = 0;
    if (!words)
        return NULL;
    words[n++] = argv[0];
    words[n++] = keep;
    words[n++] = dog.signal;
    words[n++] = dog.stage;
    for (int i = argc > 1 && strcmp(argv[1], "optimise") == 0 ? 2 : 1; i < argc; i++)
        words[n++] = argv[i];
    return words;
}

void po_watchdog_start(const po_cli *cli, double seconds) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number()};
    struct sigaction action = {.sa_handler = bark, .sa_flags = SA_RESTART};
    if (cli->command == PO_CMD_KEEP)
        return;
    snprintf(dog.stage, sizeof dog.stage, "import");
    dog.command = cli->out ? command_of(cli->argc, cli->argv) : NULL;
    dog.made = (dog.command || !cli->out) && sigaction(number(), &action, NULL) == 0 &&
               timer_create(CLOCK_MONOTONIC, &event, &dog.timer) == 0;
    dog.armed = dog.made;
    wind(seconds + patience);
}

void po_watchdog_stage(const char *stage) {
    snprintf(dog.stage, sizeof dog.stage, "%s", stage);
}

void po_watchdog_hurry(void) {
    if (dog.armed)
        wind(patience);
}

void po_watchdog_stop(void) {
    dog.armed = 0;
    if (dog.made)
        timer_delete(dog.timer);
    dog.made = false;
    free(dog.command);
    dog.command = NULL;
}

void po_watchdog_took_over(const po_cli *cli, po_summary *summary) {
    static char note[128];
    static const char *notes[1];
    po_folder_remove_left();
    snprintf(note, sizeof note,
             "the stage '%s' did not end in its time: the run was given up, the original is kept",
             cli->kept_stage);
    notes[0] = note;
    summary->notes = notes;
    summary->n_notes = 1;
    summary->stopped = cli->kept_signal ? PO_CANCELLED : PO_TIME_LIMIT;
}

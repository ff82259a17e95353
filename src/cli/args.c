/* Arguments: the program's own options and the library's stand in one table each, from which
 * getopt's tables and the text of --help are made. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdlib.h>

/* Options of the program itself; those of the library come from po_option_at. */
typedef struct own_option {
    const char *name;
    char letter;
    const char *argument; /* NULL: none */
    const char *help;
    unsigned commands;
} own_option;

enum { OWN_BASE = 1000, LIBRARY_BASE = 2000, MAX_OPTIONS = 64, HELP_COLUMN = 30 };
enum { OPT_OUTPUT, OPT_JSON, OPT_REPORT, OPT_QUIET, OPT_VERBOSE, OPT_HELP, OPT_VERSION };

#define EVERY (PO_FOR_OPTIMISE | PO_FOR_VERIFY | PO_FOR_BENCH)

static const own_option own[] = {
    [OPT_OUTPUT] = {"output", 'o', "OUT", "where the model is written", PO_FOR_OPTIMISE},
    [OPT_JSON] = {"json", 0, "FILE", "write what was found as JSON", EVERY},
    [OPT_REPORT] = {"report", 0, "FILE.html", "write a page with pictures", PO_FOR_OPTIMISE},
    [OPT_QUIET] = {"quiet", 'q', NULL, "print nothing but errors", EVERY},
    [OPT_VERBOSE] = {"verbose", 'v', NULL, "print details while running", EVERY},
    [OPT_HELP] = {"help", 'h', NULL, "print this", EVERY},
    [OPT_VERSION] = {"version", 'V', NULL, "print the version", EVERY},
};
enum { OWN = sizeof own / sizeof own[0] };

static const struct {
    const char *name;
    po_command command;
    unsigned options; /* PO_FOR_... */
    int least, most;  /* files */
    const char *usage, *help;
} commands[] = {
    {"optimise", PO_CMD_OPTIMISE, PO_FOR_OPTIMISE, 1, 1, "petopt IN -o OUT [options]",
     "optimise IN for ONNX Runtime on this machine"},
    {"verify", PO_CMD_VERIFY, PO_FOR_VERIFY, 2, 2, "petopt verify A B [options]",
     "decide whether B computes what A does"},
    {"bench", PO_CMD_BENCH, PO_FOR_BENCH, 1, 8, "petopt bench A [B..] [options]",
     "latency of models side by side"},
    {"show", PO_CMD_SHOW, 0, 1, 1, "petopt show M", "print the text form of a model"},
    {"explain", PO_CMD_EXPLAIN, PO_FOR_OPTIMISE, 1, 1, "petopt explain M [options]",
     "search as for optimise, write no model, and print what was tried"},
    {"keep", PO_CMD_KEEP, PO_FOR_OPTIMISE, 1, 1, NULL, NULL}, /* SIGNAL STAGE come first */
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_option(FILE *to, const char *name, char letter, const char *argument,
                         const char *help) {
    int n = letter ? fprintf(to, "  -%c, ", letter) : fprintf(to, "      ");
    n += fprintf(to, "--%s%s%s", name, argument ? " " : "", argument ? argument : "");
    if (n >= HELP_COLUMN) {
        fputc('\n', to);
        n = 0;
    }
    fprintf(to, "%*s%s\n", HELP_COLUMN - n, "", help);
}

void po_cli_help(FILE *to) {
    fprintf(to, "petopt %s: makes an ONNX model faster without changing what it computes\n\n",
            po_version());
    for (int i = 0; i < COMMANDS; i++)
        if (commands[i].usage)
            fprintf(to, "  %-34s %s\n", commands[i].usage, commands[i].help);
    fprintf(to, "\nOptions (o: optimise, v: verify, b: bench):\n");
    for (int i = 0; i < OWN; i++)
        print_option(to, own[i].name, own[i].letter, own[i].argument, own[i].help);
    for (size_t i = 0; po_option_at(i); i++) {
        const po_option_def *d = po_option_at(i);
        char help[512];
        snprintf(help, sizeof help, "%s [%s%s%s]", d->help,
                 d->commands & PO_FOR_OPTIMISE ? "o" : "", d->commands & PO_FOR_VERIFY ? "v" : "",
                 d->commands & PO_FOR_BENCH ? "b" : "");
        print_option(to, d->name, d->letter, d->argument, help);
    }
    fprintf(to, "\nExit codes: 0 done; 1 not equal (verify); 2 bad input or use; 3 the runtime "
                "failed;\n130 and 143: interrupted, the best verified so far was written.\n");
}

/* --- getopt's tables, made from ours --- */

typedef struct getopt_tables {
    struct option longs[MAX_OPTIONS + 1];
    char shorts[3 * MAX_OPTIONS + 2];
    size_t n_longs, n_shorts;
} getopt_tables;

static void add_row(getopt_tables *t, const char *name, char letter, bool argument, int value) {
    if (t->n_longs == MAX_OPTIONS)
        return;
    int kind = argument ? required_argument : no_argument;
    t->longs[t->n_longs++] = (struct option){name, kind, NULL, value};
    if (letter) {
        t->shorts[t->n_shorts++] = letter;
        if (argument)
            t->shorts[t->n_shorts++] = ':';
    }
}

static void make_tables(getopt_tables *t) {
    memset(t, 0, sizeof *t);
    t->shorts[t->n_shorts++] = ':'; /* tell a missing argument from an unknown option */
    for (int i = 0; i < OWN; i++)
        add_row(t, own[i].name, own[i].letter, own[i].argument != NULL, OWN_BASE + i);
    for (size_t i = 0; po_option_at(i); i++)
        add_row(t, po_option_at(i)->name, po_option_at(i)->letter, true, LIBRARY_BASE + (int)i);
}

/* The table value of what getopt returned: a letter stands for its long form. */
static int value_of(int got) {
    if (got >= OWN_BASE)
        return got;
    for (int i = 0; i < OWN; i++)
        if (own[i].letter == got)
            return OWN_BASE + i;
    for (size_t i = 0; po_option_at(i); i++)
        if (po_option_at(i)->letter == got)
            return LIBRARY_BASE + (int)i;
    return -1;
}

static int set_own(po_cli *cli, int which, const char *argument) {
    switch (which) {
    case OPT_OUTPUT:
        cli->out = argument;
        break;
    case OPT_JSON:
        cli->json = argument;
        break;
    case OPT_REPORT:
        cli->report = argument;
        break;
    case OPT_QUIET:
        cli->quiet = true;
        break;
    case OPT_VERBOSE:
        cli->verbose = true;
        break;
    case OPT_HELP:
        cli->help = true;
        break;
    default:
        cli->version = true;
        break;
    }
    return -1;
}

static int set_option(po_cli *cli, int row, int got, const char *argument) {
    if (got == ':')
        return po_complain_use("option %s needs a value", argument);
    int value = value_of(got);
    if (got == '?' || value < 0)
        return po_complain_use("there is no option %s (see petopt --help)", argument);
    const own_option *o = value < LIBRARY_BASE ? &own[value - OWN_BASE] : NULL;
    const po_option_def *d = o ? NULL : po_option_at((size_t)(value - LIBRARY_BASE));
    bool always = value == OWN_BASE + OPT_HELP || value == OWN_BASE + OPT_VERSION;
    if (!((o ? o->commands : d->commands) & commands[row].options) && !always)
        return po_complain_use("option --%s is not for %s", o ? o->name : d->name,
                               commands[row].name);
    if (o)
        return set_own(cli, value - OWN_BASE, argument);
    po_error error;
    if (po_options_set(cli->options, d->name, argument, &error) != PO_OK)
        return po_complain(error.status, error.message);
    return -1;
}

static int check_files(const po_cli *cli, int row) {
    if (cli->n_files < commands[row].least || cli->n_files > commands[row].most)
        return po_complain_use("%s takes %s%d file%s, not %d: %s", commands[row].name,
                               commands[row].least < commands[row].most ? "1 to " : "",
                               commands[row].most, commands[row].most == 1 ? "" : "s", cli->n_files,
                               commands[row].usage ? commands[row].usage : commands[0].usage);
    if ((cli->command == PO_CMD_OPTIMISE || cli->command == PO_CMD_KEEP) && !cli->out)
        return po_complain_use("say where the model is to be written: petopt IN -o OUT");
    if (cli->command == PO_CMD_EXPLAIN && cli->out)
        return po_complain_use("option --output is not for explain: it writes no model");
    if (cli->out && !*cli->out)
        return po_complain_use("-o: the name of the output is empty");
    return -1;
}

int po_cli_parse(po_cli *cli, int argc, char **argv) {
    cli->argc = argc;
    cli->argv = argv;
    getopt_tables tables;
    make_tables(&tables);
    int row = 0;
    for (int i = 0; i < COMMANDS && argc > 1; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            row = i;
    if (argc > 1 && strcmp(argv[1], commands[row].name) == 0) {
        argc--; /* the sub-command stands where getopt expects the program's name */
        argv++;
    }
    cli->command = commands[row].command;
    if (cli->command == PO_CMD_KEEP) {
        if (argc < 3)
            return po_complain_use("keep is how this program ends a run that hung");
        cli->kept_signal = atoi(argv[1]);
        cli->kept_stage = argv[2];
        argc -= 2;
        argv += 2;
    }
    po_status status = po_options_create(&cli->options);
    if (status != PO_OK)
        return po_complain(status, "memory ran out");
    opterr = 0;
    for (;;) {
        int before = optind;
        int got = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
        if (got == -1)
            break;
        const char letter[3] = {'-', (char)optopt, '\0'};
        const char *shown = optarg;
        if (got == '?' || got == ':')
            shown =
                optopt > 0 && optopt < 128 ? letter : argv[optind > before ? optind - 1 : before];
        int code = set_option(cli, row, got, shown);
        if (code >= 0)
            return code;
    }
    cli->files = argv + optind;
    cli->n_files = argc - optind;
    return cli->help || cli->version ? -1 : check_files(cli, row);
}

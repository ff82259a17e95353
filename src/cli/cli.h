/* The command line: what the files of src/cli share. */
#ifndef PO_CLI_CLI_H
#define PO_CLI_CLI_H

#include "base/str.h"
#include "petopt.h"

#include <stdio.h>

typedef enum po_command {
    PO_CMD_OPTIMISE,
    PO_CMD_VERIFY,
    PO_CMD_BENCH,
    PO_CMD_SHOW,
    PO_CMD_EXPLAIN,
    PO_CMD_KEEP /* watchdog.c: of this program alone */
} po_command;

typedef struct po_cli {
    po_command command;
    const char *out, *json, *report;
    bool quiet, verbose;
    bool help, version; /* asked for: nothing else counts */
    po_options *options;
    char **files;
    int n_files;
    char **argv; /* all of it */
    int argc;
    const char *kept_stage; /* PO_CMD_KEEP: in which a run hung */
    int kept_signal;        /* that it did not heed; 0: it was late */
} po_cli;

enum { PO_EXIT_OK = 0, PO_EXIT_NOT_EQUAL = 1, PO_EXIT_BAD = 2, PO_EXIT_FAILED = 3 };

/* Prints "petopt: <message>" as one line on standard error, whatever is in it, and returns the
 * exit code. */
int po_complain(po_status status, const char *message);
__attribute__((format(printf, 1, 2))) int po_complain_use(const char *format, ...);

/* --- args.c --- */

/* Reads the arguments. Returns -1 to go on, else the exit code (the reason was printed). */
int po_cli_parse(po_cli *cli, int argc, char **argv);
/* Writes the text of --help. */
void po_cli_help(FILE *to);

/* --- signals.c --- */

/* SIGINT, SIGTERM and SIGHUP raise the flag, a second one ends the program. */
void po_signals_install(po_cancel *cancel);
int po_signal_seen(void); /* its number, or 0 */
/* A mapped file lost its end while it was read (SIGBUS): nothing that was made since holds. */
bool po_signal_short_file(void);

/* --- outputs.c --- */

/* Prints on standard output, now; false once anything could not be printed. NULL: nothing more. */
bool po_say(const char *text);

/* The files that are written beside the model. */
typedef struct po_outputs po_outputs;
/* Whether the files that the options name can be written. Returns PO_EXIT_OK, or the code after
 * the complaint. */
int po_outputs_begin(const po_cli *cli, po_outputs **outputs);
/* Writes a file under a temporary name; path NULL: none is wanted. data NULL: it could not be made
 * for want of memory. Failures are kept. */
void po_outputs_add(po_outputs *outputs, const char *path, const char *data, size_t size);
/* The files take their names; false: one could not be written, and none has. */
bool po_outputs_place(po_outputs *outputs);
/* What the command came to, in the end: files stay where all went well, and what did not is
 * complained about. outputs may be NULL. Returns the exit code. */
int po_outputs_end(po_outputs *outputs, po_status status, const char *message);
void po_outputs_free(po_outputs *outputs);

/* --- watchdog.c --- */

/* From here on the run has so many seconds; what is under way a little later is given up. */
void po_watchdog_start(const po_cli *cli, double seconds);
void po_watchdog_stop(void);
void po_watchdog_stage(const char *stage); /* that is under way */
/* For signal handlers: the run is to end now. */
void po_watchdog_hurry(void);
/* PO_CMD_KEEP: removes what the run left behind, and says in the summary what happened. */
void po_watchdog_took_over(const po_cli *cli, po_summary *summary);

/* --- terminal.c --- */

typedef struct po_terminal {
    bool quiet;
    bool line;  /* standard error is a terminal: one line, rewritten */
    bool shown; /* the line is not empty now */
    double started, last;
    int width;
} po_terminal;

/* Prepares the callbacks that print progress and details as the options say. */
void po_terminal_init(po_terminal *terminal, const po_cli *cli, po_callbacks *callbacks);
/* Clears the progress line. */
void po_terminal_clear(po_terminal *terminal);

/* --- what a run came to --- */

typedef struct po_outcome {
    const char *in, *out; /* out: NULL where none is written */
    double load_seconds;
    const po_summary *summary;
    const po_node_view *before, *after;
    size_t n_before, n_after;
} po_outcome;

/* table.c: the closing table. */
void po_table_print(po_text *text, const po_outcome *outcome);
void po_text_ms(po_text *text, double ms); /* "152.4 ms", "31 us" */

/* explain.c: what the search tried for each part of the model. */
void po_explain_print(po_text *text, const po_outcome *outcome);

/* json.c: the text of --json, to be freed; NULL: memory ran out. */
char *po_json_optimise(const po_outcome *outcome);
char *po_json_verify(const po_equality *report, const char *a, const char *b);
char *po_json_bench(const po_bench_report *report, char *const *files);

/* html.c: the page of --report. */
void po_html_report(po_text *text, const po_outcome *outcome);
/* For text between tags and in attributes: markup is escaped, control characters, bad UTF-8 and
 * marks that change the reading direction are replaced, and at most `most` bytes are taken. */
void po_html_text(po_text *text, const char *string, size_t most);
/* charts.c: pictures. */
void po_chart_latency(po_text *text, const po_summary *summary);
void po_chart_operators(po_text *text, const po_summary *summary);
void po_chart_stages(po_text *text, const po_summary *summary);
void po_chart_candidates(po_text *text, const po_summary *summary);
/* sketch.c: the regions that changed, before and after. */
void po_sketch_regions(po_text *text, const po_outcome *outcome);
/* One graph as boxes and lines. */
void po_sketch_nodes(po_text *text, const po_node_view *const *nodes, uint32_t n, bool after);
/* subprograms.c: the search, each subprogram with its mutants. */
void po_html_subprograms(po_text *text, const po_summary *summary);

#endif

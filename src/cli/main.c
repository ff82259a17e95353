/* The commands from beginning to end: each runs the library, makes its reports before anything is
 * written, and turns what came of it into an exit code. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* --- messages and exit codes --- */

/* The exit code that a failure stands for. */
static int exit_code(po_status status) {
    switch (status) {
    case PO_OK:
        return PO_EXIT_OK;
    case PO_NOT_EQUAL:
        return PO_EXIT_NOT_EQUAL;
    case PO_NO_MEMORY:
    case PO_RUNTIME:
    case PO_TIME_LIMIT:
    case PO_INTERNAL:
        return PO_EXIT_FAILED;
    case PO_CANCELLED:
        return 128 + po_signal_seen();
    default:
        return PO_EXIT_BAD;
    }
}

int po_complain(po_status status, const char *message) {
    char line[PO_MESSAGE_MAX];
    if (po_signal_short_file()) { /* whatever came of it */
        status = PO_IO;
        message = "a file that was being read became shorter; nothing was written";
    }
    snprintf(line, sizeof line, "%s", message);
    for (unsigned char *p = (unsigned char *)line; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
    fprintf(stderr, "petopt: %s\n", line);
    return exit_code(status);
}

int po_complain_use(const char *format, ...) {
    char message[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return po_complain(PO_BAD_USE, message);
}

/* --- text made under a guard --- */

/* What a report is made from; body fills the text. */
typedef struct report {
    void (*body)(po_text *text, const po_outcome *outcome);
    const po_outcome *outcome;
    char *text; /* to be freed */
    size_t size;
} report;

static po_status make_report(po_ctx *ctx, report *r) {
    po_guard guard;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(ctx, &guard);
    po_text text;
    po_text_init(&text, po_arena_create(ctx));
    r->body(&text, r->outcome);
    r->text = malloc(text.size + 1);
    if (r->text) {
        memcpy(r->text, text.size ? text.data : "", text.size);
        r->text[text.size] = '\0';
        r->size = text.size;
    }
    po_arenas_free_since(ctx, guard.mark);
    po_guard_pop(ctx, &guard);
    return r->text ? PO_OK : po_fail(ctx, PO_NO_MEMORY, "memory ran out");
}

/* --- optimise --- */

typedef struct optimise_run {
    const po_cli *cli;
    po_ctx ctx; /* for reports */
    po_model *in;
    po_result *result;
    po_outcome outcome;
    char *json;
    report html, table;
    po_outputs *files; /* beside the model */
} optimise_run;

/* Everything that is to be written beside the model is made first: should memory run out, nothing
 * was written. */
static po_status make_reports(optimise_run *run) {
    po_outcome *o = &run->outcome;
    po_error error;
    run->html = (report){.body = po_html_report, .outcome = o};
    run->table = (report){.body = run->cli->out ? po_table_print : po_explain_print, .outcome = o};
    if (run->cli->report) {
        po_status status = po_model_nodes(run->in, &o->before, &o->n_before, &error);
        if (status == PO_OK)
            status = po_model_nodes(po_result_model(run->result), &o->after, &o->n_after, &error);
        if (status != PO_OK)
            return po_fail(&run->ctx, status, "%s", error.message);
        PO_TRY(make_report(&run->ctx, &run->html));
    }
    if (run->cli->json && !(run->json = po_json_optimise(o)))
        return po_fail(&run->ctx, PO_NO_MEMORY, "memory ran out");
    return run->cli->quiet ? PO_OK : make_report(&run->ctx, &run->table);
}

/* All is written under temporary names: the reports take theirs, the table is printed, and only if
 * that went well does the model take its own. */
static bool tell_all(void *user) {
    optimise_run *run = user;
    return po_outputs_place(run->files) && po_say(run->table.text);
}

static int write_results(optimise_run *run) {
    const po_cli *cli = run->cli;
    po_error error;
    po_outputs_add(run->files, cli->json, run->json, run->json ? strlen(run->json) : 0);
    po_outputs_add(run->files, cli->report, run->html.text, run->html.size);
    po_status status = PO_OK;
    if (!cli->out)
        tell_all(run);
    else
        status = po_result_save_if(run->result, cli->out, tell_all, run, &error);
    return po_outputs_end(run->files, status, error.message);
}

static int optimise_loaded(optimise_run *run, po_callbacks *callbacks, po_terminal *terminal) {
    po_error error;
    po_watchdog_start(run->cli, po_options_seconds(run->cli->options));
    po_status status = po_optimise(run->in, run->cli->options, callbacks, &run->result, &error);
    po_watchdog_stop();
    po_terminal_clear(terminal);
    if (status != PO_OK || po_signal_short_file())
        return po_complain(status, error.message);
    po_summary kept = *po_result_summary(run->result);
    run->outcome.summary = &kept;
    if (run->cli->command == PO_CMD_KEEP)
        po_watchdog_took_over(run->cli, &kept);
    if (make_reports(run) != PO_OK)
        return po_complain(run->ctx.error.status, run->ctx.error.message);
    int code = write_results(run);
    int seen = run->cli->kept_signal ? run->cli->kept_signal : po_signal_seen();
    return code == PO_EXIT_OK && kept.stopped == PO_CANCELLED ? 128 + seen : code;
}

static int run_optimise(const po_cli *cli, po_callbacks *callbacks, po_terminal *terminal) {
    optimise_run run = {.cli = cli, .outcome = {.in = cli->files[0], .out = cli->out}};
    int bad = po_outputs_begin(cli, &run.files);
    if (bad != PO_EXIT_OK)
        return bad;
    po_ctx_init(&run.ctx);
    po_error error;
    double start = po_now();
    /* Reports tell what was tried, which a run that is known does not. */
    bool tells = !cli->out || cli->report || cli->json;
    po_status status = tells ? po_options_set(cli->options, "recall", "no", &error) : PO_OK;
    if (status == PO_OK && cli->command == PO_CMD_KEEP)
        status = po_options_set(cli->options, "level", "0", &error);
    if (status == PO_OK && cli->out)
        status = po_options_check_output(cli->options, cli->out, &error);
    if (status == PO_OK)
        status = po_model_load(cli->files[0], &run.in, &error);
    bool whole = status == PO_OK && !po_signal_short_file();
    run.outcome.load_seconds = po_now() - start;
    int code =
        whole ? optimise_loaded(&run, callbacks, terminal) : po_complain(status, error.message);
    po_outputs_free(run.files);
    free(run.json);
    free(run.html.text);
    free(run.table.text);
    po_result_free(run.result);
    po_model_free(run.in);
    return code;
}

/* --- the other commands --- */

/* Begins to deliver what a command found: its JSON, to be freed here. False: it cannot be written.
 */
static bool deliver_json(const po_cli *cli, po_outputs *files, char *json) {
    if (cli->json)
        po_outputs_add(files, cli->json, json, json ? strlen(json) : 0);
    free(json);
    return po_outputs_place(files);
}

static int run_verify(const po_cli *cli, po_callbacks *callbacks, po_terminal *terminal) {
    po_error error;
    po_equality verdict;
    po_outputs *files;
    int code = po_outputs_begin(cli, &files);
    if (code != PO_EXIT_OK)
        return code;
    po_status status =
        po_models_verify(cli->files[0], cli->files[1], cli->options, callbacks, &verdict, &error);
    po_terminal_clear(terminal);
    bool answered = (status == PO_OK || status == PO_NOT_EQUAL) && !po_signal_short_file();
    char *json =
        answered && cli->json ? po_json_verify(&verdict, cli->files[0], cli->files[1]) : NULL;
    if (answered && deliver_json(cli, files, json) && !cli->quiet)
        printf("%s\n%s: %s\n%s\n", verdict.equal ? "equal" : "not equal",
               verdict.proved ? "proved" : "tested only", verdict.proof, verdict.how);
    code = po_outputs_end(files, answered ? PO_OK : status, error.message);
    po_outputs_free(files);
    return code == PO_EXIT_OK ? exit_code(status) : code;
}

static void print_bench(const po_cli *cli, const po_bench_report *bench) {
    printf("%10s %8s %17s  %s\n", "ms", "ratio", "interval", "model");
    for (size_t i = 0; i < bench->n_rows; i++) {
        const po_bench_row *r = &bench->rows[i];
        char interval[48];
        snprintf(interval, sizeof interval, "%.3f to %.3f", r->low, r->high);
        printf("%10.4f %7.3fx %17s  %s\n", r->ms, r->ratio, interval, cli->files[i]);
    }
    printf("%s, %s, %u thread%s, %u rounds; the first model against itself reads %.3f\n",
           bench->runtime, bench->cpu, bench->threads, bench->threads == 1 ? "" : "s",
           bench->rounds, bench->control);
}

static int run_bench(const po_cli *cli, po_callbacks *callbacks, po_terminal *terminal) {
    po_error error;
    po_bench_report *bench = NULL;
    po_outputs *files;
    int code = po_outputs_begin(cli, &files);
    if (code != PO_EXIT_OK)
        return code;
    po_status status = po_models_bench((const char *const *)cli->files, (size_t)cli->n_files,
                                       cli->options, callbacks, &bench, &error);
    po_terminal_clear(terminal);
    bool answered = status == PO_OK && !po_signal_short_file();
    char *json = answered && cli->json ? po_json_bench(bench, cli->files) : NULL;
    if (answered && deliver_json(cli, files, json) && !cli->quiet)
        print_bench(cli, bench);
    code = po_outputs_end(files, status, error.message);
    po_outputs_free(files);
    if (status == PO_OK)
        po_bench_report_free(bench);
    return code;
}

static int run_show(const po_cli *cli) {
    po_error error;
    po_model *model;
    char *text = NULL;
    po_status status = po_model_load(cli->files[0], &model, &error);
    if (status == PO_OK)
        status = po_model_text(model, &text, &error);
    if (status == PO_OK)
        po_say(text);
    po_string_free(text);
    po_model_free(model);
    return po_outputs_end(NULL, status, error.message);
}

static int run(const po_cli *cli, po_cancel *cancel) {
    po_terminal terminal;
    po_callbacks callbacks = {.cancel = cancel};
    po_terminal_init(&terminal, cli, &callbacks);
    switch (cli->command) {
    case PO_CMD_VERIFY:
        return run_verify(cli, &callbacks, &terminal);
    case PO_CMD_BENCH:
        return run_bench(cli, &callbacks, &terminal);
    case PO_CMD_SHOW:
        return run_show(cli);
    default:
        return run_optimise(cli, &callbacks, &terminal);
    }
}

/* A closed standard stream would lend its number to the next file that is opened. */
static bool open_standard_streams(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv) {
    if (!open_standard_streams())
        return PO_EXIT_FAILED;
    po_cancel *cancel = po_cancel_create();
    if (!cancel)
        return po_complain(PO_NO_MEMORY, "memory ran out");
    po_signals_install(cancel);
    po_cli cli = {0};
    int code = po_cli_parse(&cli, argc, argv);
    if (code < 0 && cli.help)
        po_cli_help(stdout);
    else if (code < 0 && cli.version)
        printf("petopt %s\n", po_version());
    if (code < 0)
        code = cli.help || cli.version ? po_outputs_end(NULL, PO_OK, "") : run(&cli, cancel);
    po_options_free(cli.options);
    /* The flag stays: a signal may still come. */
    return code;
}

/* Streams, events and graphs: work is done at once, or kept while a stream is captured. Events read
 * a clock that only work moves, by what a kernel's shape and the libraries' fakes say: readings of
 * the emulated GPU are the same in each run, on any machine. */
#include "driver_private.h"

#include "../gpu/fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The clock is slow, as the emulation is: readings repeat work until enough of it has gone by. */
static const double slowness = 20, launch_microseconds = 5, microseconds_a_wave = 1;
enum { BLOCKS_A_WAVE = 108 };

static stream default_stream;
static double clock_now; /* microseconds; under the driver's lock */

static double microseconds_of(const node *n) {
    double blocks = (double)n->shape.grid[0] * n->shape.grid[1] * n->shape.grid[2];
    if (n->action == LAUNCH)
        return launch_microseconds + microseconds_a_wave * ceil(blocks / BLOCKS_A_WAVE);
    return n->action == WORK ? n->microseconds : launch_microseconds;
}

static double clock_after(double microseconds) {
    (void)pthread_mutex_lock(&driver_lock);
    double now = clock_now += slowness * microseconds;
    (void)pthread_mutex_unlock(&driver_lock);
    return now;
}

static int run(const node *n) {
    (void)clock_after(microseconds_of(n));
    switch (n->action) {
    case COPY:
        memmove(n->to, n->from, n->bytes);
        return GOOD;
    case FILL8:
        memset(n->to, (int)n->value, n->bytes);
        return GOOD;
    case FILL32:
        for (size_t i = 0; i < n->bytes / 4; i++)
            memcpy((char *)n->to + 4 * i, &n->value, 4);
        return GOOD;
    case WORK:
        n->work(n->argument);
        return GOOD;
    case LAUNCH:
        break;
    }
    /* Where the kernel may read them: in this library. */
    static uint64_t values[ARGS];
    static void *args[ARGS];
    (void)pthread_mutex_lock(&driver_lock);
    for (uint32_t i = 0; i < ARGS; i++)
        args[i] = &values[i];
    memcpy(values, n->args, sizeof values);
    bool good = emu_launch(n->function->entry, n->function->name, &n->shape, args);
    (void)pthread_mutex_unlock(&driver_lock);
    return good ? GOOD : ILLEGAL_ADDRESS;
}

int driver_ask(void *on, const node *n) {
    stream *s = on ? on : &default_stream;
    if (!s->capture)
        return run(n);
    node *kept = malloc(sizeof *kept);
    if (!kept)
        return OUT_OF_MEMORY;
    *kept = *n;
    kept->next = NULL;
    *(s->capture->last ? &s->capture->last->next : &s->capture->first) = kept;
    s->capture->last = kept;
    s->capture->n++;
    return GOOD;
}

void fake_cuda_enqueue(void *on, void (*work)(void *), void *argument, double microseconds) {
    driver_ask(
        on,
        &(node){.action = WORK, .work = work, .argument = argument, .microseconds = microseconds});
}

int fake_cuda_holds(const void *at, uint64_t bytes) {
    return emu_holds(at, bytes);
}

int cuStreamCreate(void **out, unsigned flags) {
    (void)flags;
    READY();
    *out = calloc(1, sizeof(stream));
    return *out ? GOOD : OUT_OF_MEMORY;
}

int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(out, flags);
}

static void free_graph(graph *g) {
    for (node *n = g ? g->first : NULL; n;) {
        node *next = n->next;
        free(n);
        n = next;
    }
    free(g);
}

int cuStreamDestroy_v2(void *s) {
    if (!s)
        return INVALID_HANDLE;
    free_graph(((stream *)s)->capture);
    free(s);
    return GOOD;
}

int cuStreamSynchronize(void *on) {
    READY();
    return on && ((stream *)on)->capture ? CAPTURE_UNSUPPORTED : GOOD;
}

int cuStreamQuery(void *on) {
    return cuStreamSynchronize(on);
}

int cuStreamWaitEvent(void *on, void *e, unsigned flags) {
    (void)on;
    (void)flags;
    READY();
    return e ? GOOD : INVALID_HANDLE;
}

int cuStreamBeginCapture_v2(void *on, int mode) {
    READY();
    if (!on || mode < 0 || mode > 2)
        return on ? INVALID_VALUE : CAPTURE_UNSUPPORTED;
    stream *s = on;
    if (s->capture)
        return INVALID_VALUE;
    s->capture = calloc(1, sizeof *s->capture);
    return s->capture ? GOOD : OUT_OF_MEMORY;
}

int cuStreamEndCapture(void *on, void **out) {
    stream *s = on;
    if (!s || !s->capture)
        return INVALID_VALUE;
    *out = s->capture;
    s->capture = NULL;
    return GOOD;
}

int cuStreamIsCapturing(void *on, int *status) {
    *status = on && ((stream *)on)->capture;
    return GOOD;
}

/* --- events --- */

int cuEventCreate(void **out, unsigned flags) {
    (void)flags;
    READY();
    *out = calloc(1, sizeof(event));
    return *out ? GOOD : OUT_OF_MEMORY;
}

int cuEventDestroy_v2(void *e) {
    free(e);
    return e ? GOOD : INVALID_HANDLE;
}

int cuEventRecord(void *handle, void *on) {
    event *e = handle;
    READY();
    if (!e || (on && ((stream *)on)->capture))
        return e ? CAPTURE_UNSUPPORTED : INVALID_HANDLE;
    e->time = clock_after(0) * 1e-3;
    e->recorded = true;
    return GOOD;
}

int cuEventQuery(void *e) {
    return e ? driver_fault() : INVALID_HANDLE;
}

int cuEventSynchronize(void *e) {
    return e ? driver_fault() : INVALID_HANDLE;
}

int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    const event *a = from, *b = to;
    if (!a || !b || !a->recorded || !b->recorded)
        return INVALID_HANDLE;
    *milliseconds = (float)(b->time - a->time);
    return GOOD;
}

int cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
    return cuEventElapsedTime(milliseconds, from, to);
}

/* --- graphs --- */

int cuGraphInstantiateWithFlags(void **out, void *handle, unsigned long long flags) {
    const graph *from = handle;
    graph *to = calloc(1, sizeof *to);
    (void)flags;
    if (!from || !to) {
        free(to);
        return from ? OUT_OF_MEMORY : INVALID_VALUE;
    }
    stream s = {to};
    for (const node *n = from->first; n; n = n->next)
        if (driver_ask(&s, n) != GOOD) {
            free_graph(to);
            return OUT_OF_MEMORY;
        }
    *out = to;
    return GOOD;
}

int cuGraphGetNodes(void *handle, void **nodes, size_t *n) {
    const graph *g = handle;
    size_t i = 0;
    if (!g)
        return INVALID_VALUE;
    if (!nodes) {
        *n = g->n;
        return GOOD;
    }
    for (node *p = g->first; p && i < *n; p = p->next)
        nodes[i++] = p;
    *n = i;
    return GOOD;
}

int cuGraphUpload(void *exec, void *on) {
    (void)on;
    return exec ? GOOD : INVALID_VALUE;
}

int cuGraphLaunch(void *handle, void *on) {
    const graph *g = handle;
    READY();
    if (!g || (on && ((stream *)on)->capture))
        return INVALID_VALUE;
    for (const node *n = g->first; n; n = n->next) {
        int rc = run(n);
        if (rc)
            return rc;
    }
    return GOOD;
}

int cuGraphExecDestroy(void *exec) {
    free_graph(exec);
    return exec ? GOOD : INVALID_VALUE;
}

int cuGraphDestroy(void *g) {
    free_graph(g);
    return g ? GOOD : INVALID_VALUE;
}

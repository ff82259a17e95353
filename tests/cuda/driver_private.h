/* What the driver's parts share. */
#ifndef TEST_CUDA_DRIVER_PRIVATE_H
#define TEST_CUDA_DRIVER_PRIVATE_H

#include "driver.h"
#include "emulated_build.h"

#include <pthread.h>

enum {
    GOOD = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY = 209,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901
};

enum { ARGS = 64, SHARED_FREE = 48 << 10 };
static const size_t total_memory = (size_t)8 << 30;

typedef struct module {
    void *library;
} module;

typedef struct function {
    module *from;
    emu_entry entry;
    const unsigned *sizes; /* of the parameters, ending in 0 */
    uint32_t shared_limit;
    char name[EMU_NAME];
    struct function *next;
} function;

typedef enum action { LAUNCH, COPY, FILL8, FILL32, WORK } action;

typedef struct node {
    action action;
    struct node *next;
    const function *function;
    emu_launch_shape shape;
    uint64_t args[ARGS];
    void *to;
    const void *from;
    size_t bytes;
    unsigned value;
    void (*work)(void *); /* what the fakes of cuBLASLt and cuDNN do */
    void *argument;       /* kept until the process ends */
    double microseconds;  /* that they say it takes */
} node;

typedef struct graph {
    node *first, *last;
    size_t n;
} graph;

typedef struct stream {
    graph *capture;
} stream;

typedef struct event {
    double time; /* milliseconds */
    bool recorded;
} event;

extern pthread_mutex_t driver_lock;

/* Not started, without a context, or faulty. A fault stays, as a context's does, until emu_clear.
 */
int driver_fault(void);
int driver_ready(void);
#define READY()                                                                                    \
    do {                                                                                           \
        int ready_ = driver_ready();                                                               \
        if (ready_)                                                                                \
            return ready_;                                                                         \
    } while (0)

/* Does it, or keeps it for the graph of a captured stream. */
int driver_ask(void *on, const node *n);

#endif

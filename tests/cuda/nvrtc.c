/* NVRTC's interface over a C++ compiler: what it makes of a text runs in the emulator. A "cubin" is
 * a shared library's bytes; "PTX" is the text itself, which the driver compiles when it is loaded,
 * as a driver does with PTX. Libraries say which architecture they were asked for. */
#include "nvrtc.h"
#include "emulated_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GOOD = 0,
    OUT_OF_MEMORY = 1,
    BAD_INPUT = 3,
    BAD_PROGRAM = 4,
    BAD_OPTION = 5,
    NO_COMPILE = 6
};

struct program {
    char *text, *log, *cubin, *ptx;
    size_t cubin_bytes;
};

static const int archs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum { ARCHS = sizeof archs / sizeof archs[0] };

const char *nvrtcGetErrorString(int error) {
    switch (error) {
    case GOOD:
        return "NVRTC_SUCCESS";
    case BAD_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NO_COMPILE:
        return "NVRTC_ERROR_COMPILATION";
    default:
        return "NVRTC_ERROR_INVALID_INPUT";
    }
}

int nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return GOOD;
}

int nvrtcGetNumSupportedArchs(int *n) {
    *n = ARCHS;
    return GOOD;
}

int nvrtcGetSupportedArchs(int *out) {
    memcpy(out, archs, sizeof archs);
    return GOOD;
}

int nvrtcCreateProgram(program **p, const char *text, const char *name, int n_headers,
                       const char *const *headers, const char *const *names) {
    (void)name;
    (void)headers;
    (void)names;
    if (!text || n_headers)
        return BAD_INPUT;
    *p = calloc(1, sizeof **p);
    if (!*p)
        return OUT_OF_MEMORY;
    (*p)->text = strdup(text);
    return (*p)->text ? GOOD : OUT_OF_MEMORY;
}

int nvrtcDestroyProgram(program **p) {
    if (!p || !*p)
        return BAD_PROGRAM;
    free((*p)->text);
    free((*p)->log);
    free((*p)->cubin);
    free((*p)->ptx);
    free(*p);
    *p = NULL;
    return GOOD;
}

/* What ptxas would say of each kernel: registers for all. */
static char *usage_of(const char *text, unsigned arch) {
    char(*names)[EMU_NAME] = malloc((size_t)EMU_NAMES * EMU_NAME);
    size_t n = names ? emu_kernels_of(text, names) : 0, room = n * (EMU_NAME * 2 + 320) + 64;
    char *said = malloc(room);
    size_t at = 0;
    if (said)
        at = (size_t)snprintf(said, room, "ptxas info    : 0 bytes gmem\n");
    for (size_t i = 0; said && i < n; i++)
        at += (size_t)snprintf(
            said + at, room - at,
            "ptxas info    : Compiling entry function '%s' for 'sm_%u'\n"
            "ptxas info    : Function properties for %s\n"
            "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used 32 registers, used 1 barriers, 400 bytes cmem[0]\n"
            "ptxas info    : Compile time = 1.000 ms\n",
            names[i], arch, names[i]);
    free(names);
    return said;
}

int nvrtcCompileProgram(program *p, int n, const char *const *options) {
    static const char *const known[] = {"--gpu-architecture=",
                                        "-arch=",
                                        "--std=",
                                        "-std=",
                                        "-default-device",
                                        "--device-as-default-execution-space",
                                        "--ptxas-options=",
                                        "-Xptxas",
                                        "--fmad=",
                                        "--use_fast_math",
                                        "--extra-device-vectorization",
                                        "--generate-line-info",
                                        "-lineinfo",
                                        "-D",
                                        "--define-macro=",
                                        "--split-compile=",
                                        "--no-cache",
                                        "-no-cache",
                                        "--minimal",
                                        "--restrict"};
    unsigned arch = 52;
    bool real = false, cached = true;
    for (int i = 0; i < n; i++) {
        bool is_known = false;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            is_known |= strncmp(options[i], known[k], strlen(known[k])) == 0;
        if (!is_known) {
            free(p->log);
            size_t room = strlen(options[i]) + 64;
            p->log = malloc(room);
            if (p->log)
                (void)snprintf(p->log, room, "nvrtc: error: unrecognized option %s found\n",
                               options[i]);
            return BAD_OPTION;
        }
        cached &= strcmp(options[i], "--no-cache") != 0;
        const char *value = strchr(options[i], '=');
        if (value &&
            (strncmp(options[i], "--gpu-arch", 10) == 0 || strncmp(options[i], "-arch", 5) == 0)) {
            real = strncmp(value, "=sm_", 4) == 0;
            arch = (unsigned)strtoul(strchr(value, '_') ? strchr(value, '_') + 1 : "0", NULL, 10);
        }
    }
    char folder[128], library[160];
    if (!emu_folder(folder, sizeof folder))
        return OUT_OF_MEMORY;
    (void)snprintf(library, sizeof library, "%s/kernel.so", folder);
    free(p->log);
    p->log = NULL;
    bool good = emu_build(p->text, arch, library, &p->log);
    if (good && real) {
        free(p->cubin);
        p->cubin = emu_read(library, &p->cubin_bytes);
        free(p->log);
        p->log = cached ? NULL : usage_of(p->text, arch); /* ptxas is silent of what is kept */
    }
    emu_folder_remove(folder);
    if (!good)
        return NO_COMPILE;
    size_t room = strlen(p->text) + 64;
    free(p->ptx);
    p->ptx = malloc(room);
    if (p->ptx)
        (void)snprintf(p->ptx, room, "//.version 9.0 .target sm_%u emulated\n%s", arch, p->text);
    return p->ptx ? GOOD : OUT_OF_MEMORY;
}

int nvrtcGetProgramLogSize(program *p, size_t *bytes) {
    *bytes = p->log ? strlen(p->log) + 1 : 1;
    return GOOD;
}

int nvrtcGetProgramLog(program *p, char *log) {
    (void)strcpy(log, p->log ? p->log : "");
    return GOOD;
}

int nvrtcGetCUBINSize(program *p, size_t *bytes) {
    *bytes = p->cubin ? p->cubin_bytes : 0;
    return GOOD;
}

int nvrtcGetCUBIN(program *p, char *data) {
    if (!p->cubin)
        return BAD_PROGRAM;
    memcpy(data, p->cubin, p->cubin_bytes);
    return GOOD;
}

int nvrtcGetPTXSize(program *p, size_t *bytes) {
    *bytes = p->ptx ? strlen(p->ptx) + 1 : 0;
    return p->ptx ? GOOD : BAD_PROGRAM;
}

int nvrtcGetPTX(program *p, char *data) {
    if (!p->ptx)
        return BAD_PROGRAM;
    (void)strcpy(data, p->ptx);
    return GOOD;
}

/* Images of kernels: for all architectures or one, kept and found again; what is kept and damaged
 * is made again. The compiler is the emulated one of tests/cuda. */
#include "unit.h"

#include "codegen/cuda/library.h"

#include <string.h>

enum { MOST = 32 };

/* A store in memory. */
typedef struct store {
    po_hash key[MOST];
    po_bytes bytes[MOST];
    uint32_t n, found;
    po_arena *arena;
} store;

static bool find(void *user, po_arena *arena, po_hash key, po_bytes *object) {
    store *s = user;
    (void)arena;
    for (uint32_t i = 0; i < s->n; i++)
        if (po_hash_equal(s->key[i], key)) {
            *object = s->bytes[i];
            s->found++;
            return true;
        }
    return false;
}

static void keep(void *user, po_hash key, po_bytes object) {
    store *s = user;
    assert_true(s->n < MOST);
    s->key[s->n] = key;
    s->bytes[s->n++] = (po_bytes){po_arena_memdup(s->arena, object.data, object.size), object.size};
}

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_nvrtc *nvrtc;
    store kept;
    po_object_store store;
    po_cuda_launch launch;
    po_cuda_kernel kernel;
} fixture;

static void start(fixture *f, const char *source) {
    memset(f, 0, sizeof *f);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    if (po_nvrtc_open(&f->ctx, f->arena, EMULATED "/libnvrtc.so.13", &f->nvrtc) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    f->kept.arena = f->arena;
    f->store = (po_object_store){&f->kept, find, keep};
    f->launch = (po_cuda_launch){.symbol = "G_0", .grid = {1, 1, 1}, .threads = 32};
    f->kernel =
        (po_cuda_kernel){.ports = {.name = "G"},
                         .program = {.source = source, .n_launches = 1, .launches = &f->launch}};
}

static const char good[] =
    "extern \"C\" __global__ void G_0(float *y) { y[threadIdx.x] = 1.0f; }\n";

static po_status compile(fixture *f) {
    return po_cuda_kernel_compile(&f->ctx, f->arena, f->nvrtc, &f->store, &f->kernel);
}

/* made: anew, which the emulated compiler does with other names of files. */
static void same(const po_cuda_kernel *a, const po_cuda_kernel *b, bool made) {
    assert_int_equal(a->n_images, b->n_images);
    for (uint32_t i = 0; i < a->n_images; i++) {
        const po_cuda_image *x = &a->images[i], *y = &b->images[i];
        assert_true(x->arch == y->arch && x->ptx == y->ptx && x->n_usage == y->n_usage);
        assert_true(x->bytes.size > 0 && x->bytes.size == y->bytes.size);
        assert_memory_equal(x->bytes.data, y->bytes.data, made ? 4 : x->bytes.size);
        for (uint32_t k = 0; k < x->n_usage; k++) {
            assert_string_equal(x->usage[k].symbol, y->usage[k].symbol);
            assert_int_equal(x->usage[k].registers, y->usage[k].registers);
            assert_int_equal(x->usage[k].spills, y->usage[k].spills);
        }
    }
}

static void all_are_made_and_kept(void **state) {
    (void)state;
    fixture f;
    start(&f, good);
    assert_int_equal(compile(&f), PO_OK);
    po_cuda_kernel first = f.kernel;
    assert_int_equal(first.n_images, PO_CUDA_ARCHS + 1);
    for (uint32_t i = 0; i < PO_CUDA_ARCHS; i++)
        assert_true(first.images[i].arch == po_cuda_archs[i] && !first.images[i].ptx);
    assert_true(first.images[PO_CUDA_ARCHS].ptx);
    assert_int_equal(f.kept.n, PO_CUDA_ARCHS + 1);
    assert_int_equal(compile(&f), PO_OK);
    assert_int_equal(f.kept.n, PO_CUDA_ARCHS + 1);
    assert_int_equal(f.kept.found, PO_CUDA_ARCHS + 1);
    same(&first, &f.kernel, false);
    po_arena_free(f.arena);
}

/* Cut short, or with more rows than there can be. */
static void damaged_ones_are_made_again(void **state) {
    (void)state;
    fixture f;
    start(&f, good);
    assert_int_equal(compile(&f), PO_OK);
    po_cuda_kernel first = f.kernel;
    uint32_t made = f.kept.n;
    for (uint32_t i = 0; i < made; i++)
        f.kept.bytes[i].size = i % 3; /* not even the number of rows */
    assert_int_equal(compile(&f), PO_OK);
    assert_int_equal(f.kept.n, 2 * made);
    same(&first, &f.kernel, true);
    f.kept.n = made; /* the new ones are gone again */
    static const char many[] = "\xff\xff\xff\xff and nothing that would be so many rows";
    for (uint32_t i = 0; i < made; i++)
        f.kept.bytes[i] = (po_bytes){many, sizeof many};
    assert_int_equal(compile(&f), PO_OK);
    same(&first, &f.kernel, true);
    po_arena_free(f.arena);
}

static void one_gpu_alone(void **state) {
    (void)state;
    static const struct {
        uint32_t gpu, arch;
        bool ptx;
    } rows[] = {{80, 80, false}, {87, 86, false},   {89, 89, false},
                {90, 90, false}, {103, 100, false}, {120, 100, true}};
    fixture f;
    start(&f, good);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            po_cuda_kernel_compile_for(&f.ctx, f.arena, f.nvrtc, &f.store, rows[i].gpu, &f.kernel),
            PO_OK);
        assert_int_equal(f.kernel.n_images, 1);
        assert_int_equal(f.kernel.images[0].arch, rows[i].arch);
        assert_int_equal(f.kernel.images[0].ptx, rows[i].ptx);
    }
    po_cuda_kernel alone = f.kernel;
    uint32_t found = f.kept.found;
    assert_int_equal(compile(&f), PO_OK); /* these need not be made again */
    assert_int_equal(f.kept.found, found + PO_CUDA_ARCHS + 1);
    f.kernel.images += PO_CUDA_ARCHS;
    f.kernel.n_images = 1;
    same(&alone, &f.kernel, false);
    po_arena_free(f.arena);
}

static void what_does_not_compile(void **state) {
    (void)state;
    fixture f;
    start(&f, "extern \"C\" __global__ void G_0(float *y) { y[0] = no_such_thing; }\n");
    assert_int_equal(compile(&f), PO_UNSUPPORTED);
    assert_non_null(strstr(f.ctx.error.message, "no_such_thing"));
    assert_non_null(strstr(f.ctx.error.message, "G does not compile"));
    assert_int_equal(f.kept.n, 0);
    po_arena_free(f.arena);
}

static void made_for_a_driver(void **state) {
    (void)state;
    fixture f;
    po_nvrtc *n;
    start(&f, good);
    assert_int_equal(po_nvrtc_find(&f.ctx, f.arena, EMULATED, "13.2", &n), PO_OK);
    assert_int_equal(po_nvrtc_cuda(n), 13000);
    assert_int_equal(po_nvrtc_find(&f.ctx, f.arena, EMULATED, NULL, &n), PO_OK);
    assert_int_equal(po_nvrtc_cuda(n), 13000);
    /* Where there is an older one besides it is taken; the folder has none. */
    po_status status = po_nvrtc_find(&f.ctx, f.arena, EMULATED, "12.4", &n);
    if (status == PO_OK)
        assert_true(po_nvrtc_cuda(n) < 13000);
    else
        assert_true(strstr(f.ctx.error.message, "this one is for CUDA 12.4") ||
                    strstr(f.ctx.error.message, "was not found"));
    po_arena_free(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_made_and_kept), cmocka_unit_test(damaged_ones_are_made_again),
        cmocka_unit_test(one_gpu_alone),         cmocka_unit_test(made_for_a_driver),
        cmocka_unit_test(what_does_not_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The scanner by itself: a schema that ONNX does not have, limits to the byte, sizes of files. */
#include "unit.h"

#include "import/import.h"
#include "import/scan.h"
#include "import/sha1.h"
#include "onnx_build.h"
#include "test_paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- another schema --- */

enum { N_ODD = 8 };

/* A message with fields 1, 2 .. N_ODD of types that ONNX may use one day. */
static ProtobufCFieldDescriptor odd_fields[64];
static const ProtobufCIntRange odd_ranges[] = {{1, 0}, {0, 64}};
static ProtobufCMessageDescriptor odd = {
    .magic = 0x28AAEEF9, /* protobuf-c's own */
    .name = "Odd",
    .sizeof_message = 8,
    .n_fields = N_ODD,
    .fields = odd_fields,
    .n_field_ranges = 1,
    .field_ranges = odd_ranges,
};

static void set_up_schema(void) {
    static const ProtobufCType types[N_ODD] = {
        PROTOBUF_C_TYPE_FIXED32,  PROTOBUF_C_TYPE_SFIXED32, PROTOBUF_C_TYPE_FIXED64,
        PROTOBUF_C_TYPE_SFIXED64, PROTOBUF_C_TYPE_BOOL, /* and two choices: */
        PROTOBUF_C_TYPE_INT32,    PROTOBUF_C_TYPE_INT32,    PROTOBUF_C_TYPE_INT32,
    };
    static const char *const names[N_ODD] = {"f32", "sf32", "f64", "sf64", "b", "x", "y", "z"};
    for (unsigned i = 0; i < N_ODD; i++)
        odd_fields[i] = (ProtobufCFieldDescriptor){
            .name = names[i],
            .id = i + 1,
            .label = PROTOBUF_C_LABEL_OPTIONAL,
            .type = types[i],
            .quantifier_offset = i < 7 ? 4 : 0,
            .flags = i >= 5 ? PROTOBUF_C_FIELD_FLAG_ONEOF : 0,
        };
}

static void scan_odd(const char *bytes, size_t size, const char *want) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_scanned scan;
    po_status status = po_scan_message(&ctx, a, a, "f", &odd, (const uint8_t *)bytes, size, &scan);
    if (want) {
        assert_int_equal(status, PO_BAD_INPUT);
        assert_string_equal(ctx.error.message, want);
    } else {
        assert_int_equal(status, PO_OK);
        assert_int_equal(scan.skeleton_size, size);
        assert_memory_equal(scan.skeleton, bytes, size);
        assert_int_equal(scan.n_raw, 0);
    }
    po_arena_free(a);
}

static void test_schema(void **state) {
    (void)state;
    set_up_schema();
    scan_odd("\x0d"
             "1234"
             "\x15"
             "1234"
             "\x19"
             "12345678"
             "\x21"
             "12345678"
             "\x28\x01",
             30, NULL);
    scan_odd("\x08\x01", 2, "f: f32: the field has the wrong wire type (found 0, want 5)");
    scan_odd("\x10\x01", 2, "f: sf32: the field has the wrong wire type (found 0, want 5)");
    scan_odd("\x18\x01", 2, "f: f64: the field has the wrong wire type (found 0, want 1)");
    scan_odd("\x20\x01", 2, "f: sf64: the field has the wrong wire type (found 0, want 1)");
    /* x and y are one choice, z is another. */
    scan_odd("\x30\x01\x40\x01", 4, NULL);
    scan_odd("\x30\x01\x38\x01", 4, "f: y: two fields are there of which one excludes the other");
}

/* The table of what was met has room for 32 fields. */
static void test_many_fields(void **state) {
    (void)state;
    set_up_schema();
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_scanned scan;
    odd.n_fields = 33;
    assert_int_equal(po_scan_message(&ctx, a, a, "f", &odd, (const uint8_t *)"\x28\x01", 2, &scan),
                     PO_INTERNAL);
    assert_string_equal(ctx.error.message, "message Odd has too many fields");
    odd.n_fields = N_ODD;
    po_arena_free(a);
}

static void test_raw_number(void **state) {
    (void)state;
    uint8_t bytes[8] = {1, 2};
    assert_int_equal(po_raw_number(&(ProtobufCBinaryData){8, bytes}), 0x201);
    assert_true(po_raw_number(&(ProtobufCBinaryData){7, bytes}) == UINT64_MAX);
}

/* --- the limit of memory --- */

enum { ROOM = 256 << 20, FOR_EACH_BYTE = 32, FOR_A_MESSAGE = 64, FOR_A_NUMBER = 8 };

/* A model of empty nodes, then unknown fields, which cost one more than they are granted, then the
 * IR version. Until that is met `over` bytes are taken beyond the limit. */
static po_status flood(po_ctx *ctx, int64_t over) {
    size_t nodes = ROOM / sizeof(Onnx__NodeProto) - 4;
    uint64_t spent = sizeof(Onnx__ModelProto) + sizeof(Onnx__GraphProto) + 2 * FOR_A_MESSAGE +
                     nodes * (sizeof(Onnx__NodeProto) + FOR_A_MESSAGE);
    uint8_t header[6] = {7 << 3 | 2}; /* the graph, and its length in five bytes */
    size_t length = 2 * nodes;
    for (int i = 0; i < 5; i++, length >>= 7)
        header[1 + i] = (uint8_t)((length & 0x7f) | (i < 4 ? 0x80 : 0));
    uint64_t granted = ROOM + FOR_EACH_BYTE * (sizeof header + 2 * nodes + 2);
    assert_true(spent < granted);
    size_t unknown = (size_t)((int64_t)(granted - spent) + over);
    size_t size = sizeof header + 2 * nodes + 2 * unknown + 2;
    uint8_t *data = malloc(size), *p = data;
    assert_non_null(data);
    memcpy(p, header, sizeof header);
    p += sizeof header;
    for (size_t i = 0; i < nodes; i++, p += 2)
        memcpy(p, "\x0a", 2);
    for (size_t i = 0; i < unknown; i++, p += 2)
        memcpy(p, "\x50", 2); /* field 10 */
    memcpy(p, "\x08\x08", 2);
    po_arena *a = po_arena_create(ctx);
    po_scanned scan;
    po_status status =
        po_scan_message(ctx, a, a, "f", &onnx__model_proto__descriptor, data, size, &scan);
    po_arena_free(a);
    free(data);
    return status;
}

static void test_memory_limit(void **state) {
    (void)state;
    static const struct {
        int64_t over;
        const char *want;
    } rows[] = {
        {1, "f: unknown field[10]: too many messages for the file's size"},
        {0, "f: ir_version: too many messages for the file's size"},
        {1 - FOR_A_NUMBER, "f: ir_version: too many messages for the file's size"},
        {-FOR_A_NUMBER, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_status status = flood(&ctx, rows[i].over);
        assert_int_equal(status, rows[i].want ? PO_BAD_INPUT : PO_OK);
        if (rows[i].want && !strstr(ctx.error.message, rows[i].want))
            fail_msg("%s", ctx.error.message);
    }
}

/* --- large files, of which nothing is there --- */

static void test_large_files(void **state) {
    (void)state;
    static const struct {
        off_t size;
        const char *want;
    } rows[] = {
        {(off_t)1 << 31, "is too large for one file (found 2147483648 bytes, limit 2147483647)"},
        /* Here its memory is limited by 16 GiB, no longer by its size. */
        {((off_t)1 << 31) - 1, "field number 0 is not allowed"},
    };
    char folder[PATH_MAX], path[PATH_MAX + 16];
    test_mkdtemp(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        assert_int_equal(ftruncate(fd, rows[i].size), 0);
        close(fd);
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_model *model;
        assert_int_equal(po_import_file(&ctx, path, &model), PO_BAD_INPUT);
        if (!strstr(ctx.error.message, rows[i].want))
            fail_msg("%s", ctx.error.message);
        assert_null(ctx.arenas);
    }
    test_rmtree(folder);
}

/* --- SHA-1 --- */

/* FIPS 180's examples, and lengths around that at which a block more is wanted (sha1sum). */
static void test_sha1(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "c1c8bbdc22796e28c0e15163d20899b65621d65a"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "0098ba824b5c16427bd7a1122a5a442a25ec644d"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "11655326c708d70319be2610e8a57d9a5b959d3b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char hex[41];
        po_sha1_hex((const uint8_t *)rows[i].text, strlen(rows[i].text), hex);
        assert_string_equal(hex, rows[i].want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema),      cmocka_unit_test(test_many_fields),
        cmocka_unit_test(test_raw_number),  cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_large_files), cmocka_unit_test(test_sha1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

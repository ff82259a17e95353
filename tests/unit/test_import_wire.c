/* The hostile list of docs/import.md: bytes. */
#include "unit.h"

#include "import/import.h"
#include "import/scan.h"
#include "onnx_build.h"

#include <stdio.h>
#include <stdlib.h>

/* A message under construction. */
typedef struct wire {
    uint8_t *data;
    size_t size, room;
} wire;

static void put(wire *w, const void *data, size_t size) {
    if (w->size + size > w->room) {
        w->room = 2 * (w->size + size);
        w->data = realloc(w->data, w->room);
    }
    if (size)
        memcpy(w->data + w->size, data, size);
    w->size += size;
}

static void put_varint(wire *w, uint64_t v) {
    do {
        uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        put(w, &byte, 1);
        v >>= 7;
    } while (v);
}

static void tag(wire *w, unsigned field, unsigned type) {
    put_varint(w, (uint64_t)field << 3 | type);
}

static void bytes(wire *w, unsigned field, const void *data, size_t size) {
    tag(w, field, 2);
    put_varint(w, size);
    put(w, data, size);
}

/* Puts what is there into a field of a message around it. */
static void wrap(wire *w, unsigned field) {
    wire outer = {0};
    bytes(&outer, field, w->data, w->size);
    free(w->data);
    *w = outer;
}

static void good_model(wire *w) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    size_t size;
    const uint8_t *data = tm_pack(a, tm_model(a), &size);
    put(w, data, size);
    po_arena_free(a);
}

/* Imports, frees the bytes; the message must hold `want` (NULL: it must be taken). */
static void expect(const char *name, wire *w, const char *want) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    /* An exact copy: a sanitizer sees the first byte read past it. */
    uint8_t *exact = malloc(w->size ? w->size : 1);
    if (w->size)
        memcpy(exact, w->data, w->size);
    po_status status = tm_import(&ctx, exact, w->size);
    free(exact);
    if (want ? status != PO_BAD_INPUT || !strstr(ctx.error.message, want) : status != PO_OK) {
        printf("%s: %s: '%s' (want '%s')\n", name, po_status_name(status), ctx.error.message,
               want ? want : "");
        fail();
    }
    assert_null(ctx.arenas);
    free(w->data);
    *w = (wire){0};
}

enum { GRAPH = 7, IR = 1, OPSET = 8, NODE = 1, ATTR = 5, ATTR_GRAPH = 6, INIT = 5, DOC = 6 };

static void test_not_a_model(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "is empty"},
        {"hello, this is no model\n", "model: "},
        {"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
        {"{\"format\": 1}", "JSON"},
        {"<html>", "XML or HTML"},
        {"ir_version: 8\n", "text form"},
        {"PK\003\004rest", "ZIP"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wire w = {0};
        put(&w, rows[i].text, strlen(rows[i].text));
        expect(rows[i].text, &w, rows[i].want);
    }
    wire w = {0}; /* a message, but none of ONNX's graph */
    tag(&w, IR, 0);
    put_varint(&w, 8);
    tag(&w, 100, 0);
    put_varint(&w, 1);
    expect("no graph", &w, "there is no graph");
}

/* A prefix is refused, unless it ends between two fields of the model: then the graph or the
 * operator sets are missing, or nothing that matters is. */
static void test_truncated(void **state) {
    (void)state;
    wire whole = {0};
    good_model(&whole);
    int taken = 0;
    for (size_t n = 0; n < whole.size; n++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        uint8_t *exact = malloc(n ? n : 1);
        memcpy(exact, whole.data, n);
        po_status status = tm_import(&ctx, exact, n);
        free(exact);
        assert_true(status == PO_OK || status == PO_BAD_INPUT);
        assert_null(ctx.arenas);
        taken += status == PO_OK;
    }
    free(whole.data);
    assert_int_equal(taken, 0);
}

static void test_trailing(void **state) {
    (void)state;
    static const char *const garbage[] = {"\n", " ", "\x01", "\xff\xff", "garbage", "\x08"};
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        wire w = {0};
        good_model(&w);
        put(&w, garbage[i], strlen(garbage[i]));
        expect("trailing garbage", &w, "model: ");
    }
    wire w = {0};
    good_model(&w);
    put(&w, "\0", 1);
    expect("trailing zero", &w, "field number 0 is not allowed");
}

static void test_lengths(void **state) {
    (void)state;
    wire w = {0};
    tag(&w, GRAPH, 2);
    put_varint(&w, 1000);
    put(&w, "abc", 3);
    expect("beyond the file", &w, "longer than what holds it (found 1000 bytes, limit 3)");
    tag(&w, NODE, 2); /* a node that is longer than its graph, in a file that is long enough */
    put_varint(&w, 50);
    wrap(&w, GRAPH);
    put(&w, "                                                            ", 60);
    expect("beyond the parent", &w, "graph/node[0]: a field is longer than what holds it");
    tag(&w, GRAPH, 2);
    put_varint(&w, UINT64_MAX);
    expect("length of 64 bits", &w, "overlong varint");
    tag(&w, GRAPH, 2);
    put(&w, "\xff\xff\xff\xff\x7f", 5);
    expect("length of 35 bits", &w, "longer than what holds it");
    bytes(&w, 4, "abc", 3); /* float_data of 3 bytes */
    wrap(&w, INIT);
    wrap(&w, GRAPH);
    expect("packed floats", &w, "graph/initializer[0]/float_data[0]: a packed field ends inside");
    tag(&w, 10, 1);
    put(&w, "1234", 4);
    wrap(&w, INIT);
    wrap(&w, GRAPH);
    expect("half a double", &w, "is cut off");
}

static void test_varints(void **state) {
    (void)state;
    wire w = {0};
    tag(&w, IR, 0);
    put(&w, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    expect("eleven bytes", &w, "ir_version: a number is an overlong varint (limit 10 bytes)");
    tag(&w, IR, 0);
    put(&w, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
    expect("65 bits", &w, "ir_version: a number is an overlong varint");
    put(&w, "\x88\x80\x80\x80\x80\x00", 6);
    expect("long tag", &w, "a field's tag is an overlong varint (limit 5 bytes)");
    tag(&w, IR, 0);
    put(&w, "\x88", 1);
    expect("cut off", &w, "ir_version: a number is cut off");
    bytes(&w, 7, "\xff", 1); /* int64_data */
    wrap(&w, INIT);
    wrap(&w, GRAPH);
    expect("packed number cut off", &w, "int64_data[0]: a number is cut off");
}

static void test_tags(void **state) {
    (void)state;
    wire w = {0};
    put(&w, "\x00\x00", 2);
    expect("field 0", &w, "field number 0 is not allowed");
    put(&w, "\x80\x80\x80\x80\x10\x00", 6);
    expect("field 2^29", &w, "field number 536870912 is not allowed");
    tag(&w, 100, 3);
    tag(&w, 100, 4);
    expect("group", &w, "a protobuf group (ONNX has none)");
    tag(&w, IR, 3);
    expect("group for a field", &w, "ir_version: a protobuf group");
    tag(&w, IR, 4);
    expect("end of no group", &w, "ir_version: a protobuf group");
    tag(&w, 100, 6);
    expect("wire type 6", &w, "unknown wire type (found 6)");
    tag(&w, 100, 7);
    expect("wire type 7", &w, "unknown wire type (found 7)");
    bytes(&w, IR, "abc", 3);
    expect("text for a number", &w,
           "ir_version: the field has the wrong wire type (found 2, want 0");
    tag(&w, GRAPH, 0);
    put_varint(&w, 1);
    expect("number for a graph", &w, "graph: the field has the wrong wire type (found 0, want 2");
}

static void test_twice(void **state) {
    (void)state;
    wire w = {0};
    good_model(&w);
    tag(&w, IR, 0);
    put_varint(&w, 8);
    expect("two IR versions", &w, "ir_version: the field is there twice");
    good_model(&w);
    bytes(&w, GRAPH, "", 0);
    expect("two graphs", &w, "graph: the field is there twice");
    tag(&w, 1, 0); /* a dim that is a number and a symbol */
    put_varint(&w, 3);
    bytes(&w, 2, "n", 1);
    wrap(&w, 1);  /* dim */
    wrap(&w, 2);  /* shape */
    wrap(&w, 1);  /* tensor_type */
    wrap(&w, 2);  /* type */
    wrap(&w, 11); /* input */
    wrap(&w, GRAPH);
    expect("two of a choice", &w,
           "graph/input[0]/type/tensor_type/shape/dim[0]/dim_param: two fields are there");
}

/* Bodies in nodes in bodies: the bomb that crashes recursive parsers. */
static void nest(wire *w, int levels) {
    for (int i = 0; i < levels; i++) {
        wrap(w, ATTR_GRAPH);
        wrap(w, ATTR);
        wrap(w, NODE);
    }
    wrap(w, GRAPH);
}

static void test_nesting(void **state) {
    (void)state;
    wire w = {0};
    nest(&w, 33);
    expect("33 bodies", &w, "model: ");
    nest(&w, 3000);
    expect("9,000 messages", &w, "nested too deep (limit 100)");
    for (int i = 0; i < 3000; i++) { /* sequences of sequences */
        wrap(&w, 1);
        wrap(&w, 4);
    }
    wrap(&w, 2);
    wrap(&w, 11);
    wrap(&w, GRAPH);
    expect("type", &w, "nested too deep (limit 100)");
    for (int i = 0; i < 20; i++) {
        wrap(&w, 1);
        wrap(&w, 4);
    }
    wrap(&w, 2);
    bytes(&w, 1, "x", 1);
    wrap(&w, 11);
    wrap(&w, GRAPH);
    tag(&w, IR, 0);
    put_varint(&w, 8);
    wire opset = {0};
    tag(&opset, 2, 0);
    put_varint(&opset, 17);
    bytes(&w, OPSET, opset.data, opset.size);
    free(opset.data);
    expect("type of 20 levels", &w, "graph/input[0] 'x': the type is nested too deep (limit 16)");
}

static void test_amplification(void **state) {
    (void)state;
    wire w = {0};
    uint8_t empty_node[2] = {NODE << 3 | 2, 0};
    for (int i = 0; i < 4000000; i++)
        put(&w, empty_node, 2);
    wrap(&w, GRAPH);
    expect("millions of empty nodes", &w, "too many messages for the file's size");
    uint8_t empty_meta[3] = {0xf2, 0, 0};
    wire m = {0};
    tag(&m, 14, 2);
    memcpy(empty_meta, m.data, m.size);
    empty_meta[m.size] = 0;
    size_t n = m.size + 1;
    free(m.data);
    for (int i = 0; i < 9000000; i++)
        put(&w, empty_meta, n);
    expect("millions of empty entries", &w, "too many messages for the file's size");
}

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *want;
    } rows[] = {
        {"a\0b", 3, "holds a NUL byte"},
        {"\0", 1, "holds a NUL byte"},
        {"\xff", 1, "is not valid UTF-8"},
        {"\x80", 1, "is not valid UTF-8"},
        {"\xc0\x80", 2, "is not valid UTF-8"},         /* overlong NUL */
        {"\xc1\xbf", 2, "is not valid UTF-8"},         /* overlong */
        {"\xe0\x80\x80", 3, "is not valid UTF-8"},     /* overlong */
        {"\xed\xa0\x80", 3, "is not valid UTF-8"},     /* a surrogate */
        {"\xf0\x80\x80\x80", 4, "is not valid UTF-8"}, /* overlong */
        {"\xf4\x90\x80\x80", 4, "is not valid UTF-8"}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, "is not valid UTF-8"},
        {"\xe2\x82", 2, "is not valid UTF-8"}, /* cut off */
        {"\xf0\x9f\x98", 3, "is not valid UTF-8"},
        {"\xc3", 1, "is not valid UTF-8"},
        {"", 0, NULL},
        {"caf\xc3\xa9 \xe2\x82\xac \xed\x9f\xbf \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf", 23, NULL},
        {"\x1b[31m\r\n'\"<&>", 12, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wire w = {0};
        good_model(&w);
        bytes(&w, DOC, rows[i].text, rows[i].size);
        char want[200];
        if (rows[i].want)
            snprintf(want, sizeof want, "doc_string: a name or text %s", rows[i].want);
        expect("text", &w, rows[i].want ? want : NULL);
    }
}

/* Fields that a newer ONNX may add are taken and kept. */
static void test_unknown_fields(void **state) {
    (void)state;
    wire w = {0};
    good_model(&w);
    tag(&w, 1000, 0);
    put_varint(&w, 5);
    bytes(&w, 1001, "\xff\x00\xff", 3);
    tag(&w, 1002, 5);
    put(&w, "1234", 4);
    tag(&w, 1003, 1);
    put(&w, "12345678", 8);
    expect("unknown fields", &w, NULL);
}

/* The skeleton replaces raw_data, however short, by its number, and nothing else. */
static void test_skeleton(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    Onnx__ModelProto *m = tm_model(a);
    int64_t one = 1;
    TM_ADD(a, m->graph, initializer, tm_raw(a, "v", PO_U8, 1, &one, 1));
    size_t size;
    const uint8_t *data = tm_pack(a, m, &size);
    po_scanned scan;
    assert_int_equal(
        po_scan_message(&ctx, a, a, "f", &onnx__model_proto__descriptor, data, size, &scan), PO_OK);
    assert_int_equal(scan.n_raw, 2);
    assert_int_equal(scan.raw[0].size, 24);
    assert_int_equal(scan.raw[1].size, 1);
    Onnx__ModelProto *back = onnx__model_proto__unpack(NULL, scan.skeleton_size, scan.skeleton);
    assert_non_null(back);
    ProtobufCBinaryData refs[2];
    for (size_t i = 0; i < 2; i++) {
        Onnx__TensorProto *t = back->graph->initializer[i];
        refs[i] = t->raw_data;
        assert_int_equal(po_raw_number(&refs[i]), i);
        t->raw_data = m->graph->initializer[i]->raw_data;
        assert_int_equal(t->raw_data.len, scan.raw[i].size);
        assert_memory_equal(t->raw_data.data, scan.raw[i].data, scan.raw[i].size);
    }
    size_t again;
    const uint8_t *packed = tm_pack(a, back, &again);
    assert_int_equal(again, size);
    assert_memory_equal(packed, data, size);
    for (size_t i = 0; i < 2; i++)
        back->graph->initializer[i]->raw_data = refs[i];
    onnx__model_proto__free_unpacked(back, NULL);
    po_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_a_model),    cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_trailing),       cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_varints),        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_twice),          cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_amplification),  cmocka_unit_test(test_texts),
        cmocka_unit_test(test_unknown_fields), cmocka_unit_test(test_skeleton),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

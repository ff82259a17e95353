/* Two passes by protobuf-c's own descriptors: the first checks every field and adds up the
 * skeleton's length and the memory that unpacking takes, the second writes the skeleton. */
#include "import/scan.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_START = 3, WIRE_END = 4, WIRE_32 = 5 };

enum {
    LENGTH_ROOM = 5, /* a length of the skeleton is written in five bytes, whatever its value */
    MOST_FIELDS = 32 /* fields of one message type; checked */
};

/* What unpacking may take: honest models stay below 30 bytes of memory for a byte of structure
 * (small attributes), a file of empty messages takes 150. */
#define MEMORY_BASE   ((uint64_t)256 << 20)
#define MEMORY_FACTOR 32u
#define MEMORY_LIMIT  ((uint64_t)16 << 30)

typedef struct scanner {
    po_ctx *ctx;
    po_arena *keep;
    const char *file;
    po_raw_ref *raw;
    uint32_t n_raw, cap_raw;
    uint64_t memory; /* estimate of what unpacking takes */
    uint64_t size;   /* of the file, raw_data not counted */
    /* second pass: */
    uint8_t *out; /* NULL in the first pass */
    size_t out_room;
    size_t out_size;    /* counted in the first pass too */
    const uint8_t *cut; /* copied up to here */
} scanner;

static po_status bad(scanner *s, const po_place *at, const char *reason) {
    return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT, "%s", reason);
}

/* Reads a varint of at most `room` bytes. NULL: it is cut off; *overlong where it does not end. */
static const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, unsigned room,
                                  uint64_t *value, bool *overlong) {
    uint64_t v = 0;
    for (unsigned i = 0; i < room; i++) {
        if (p == end)
            return NULL;
        uint8_t byte = *p++;
        if (i == 9 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *value = v;
            return p;
        }
    }
    *overlong = true;
    return NULL;
}

static po_status varint(scanner *s, const po_place *at, const uint8_t **p, const uint8_t *end,
                        unsigned room, const char *what, uint64_t *value) {
    bool overlong = false;
    const uint8_t *next = read_varint(*p, end, room, value, &overlong);
    if (!next)
        return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT,
                          overlong ? "%s is an overlong varint (limit %u bytes)"
                                   : "%s is cut off (limit %u bytes)",
                          what, room);
    *p = next;
    return PO_OK;
}

static po_status length(scanner *s, const po_place *at, const uint8_t **p, const uint8_t *end,
                        size_t *n) {
    uint64_t value;
    PO_TRY(varint(s, at, p, end, LENGTH_ROOM, "a length", &value));
    if (value > (uint64_t)(end - *p))
        return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT,
                          "a field is longer than what holds it (found %llu bytes, limit %llu)",
                          (unsigned long long)value, (unsigned long long)(end - *p));
    *n = (size_t)value;
    return PO_OK;
}

static po_status charge(scanner *s, const po_place *at, uint64_t bytes) {
    s->memory += bytes;
    uint64_t limit = MEMORY_BASE + MEMORY_FACTOR * s->size;
    if (limit > MEMORY_LIMIT)
        limit = MEMORY_LIMIT;
    if (s->memory > limit)
        return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT,
                          "too many messages for the file's size (found %llu MiB in memory, limit "
                          "%llu MiB)",
                          (unsigned long long)(s->memory >> 20), (unsigned long long)(limit >> 20));
    return PO_OK;
}

/* --- the skeleton --- */

static void emit(scanner *s, const uint8_t *data, size_t size) {
    /* Room ends only where the file changes between the two passes: found out at the end. */
    if (s->out && size && s->out_size + size <= s->out_room)
        memcpy(s->out + s->out_size, data, size);
    s->out_size += size;
}

static void copy_to(scanner *s, const uint8_t *upto) {
    emit(s, s->cut, (size_t)(upto - s->cut));
    s->cut = upto;
}

static void put_length(uint8_t *at, size_t n) {
    for (int i = 0; i < LENGTH_ROOM; i++, n >>= 7)
        at[i] = (uint8_t)((n & 0x7f) | (i < LENGTH_ROOM - 1 ? 0x80 : 0));
}

/* Leaves room for a length in place of the one that ends at `body`; returns where. */
static size_t open_length(scanner *s, const uint8_t *tag_end, const uint8_t *body) {
    copy_to(s, tag_end);
    s->cut = body;
    size_t at = s->out_size;
    s->out_size += LENGTH_ROOM;
    return at;
}

static void close_length(scanner *s, size_t at, const uint8_t *end) {
    copy_to(s, end);
    if (s->out && s->out_size <= s->out_room)
        put_length(s->out + at, s->out_size - at - LENGTH_ROOM);
}

static void emit_reference(scanner *s, const uint8_t *tag_end, const uint8_t *data, size_t size) {
    copy_to(s, tag_end);
    uint8_t ref[1 + PO_RAW_REF_SIZE] = {PO_RAW_REF_SIZE};
    for (int i = 0; i < PO_RAW_REF_SIZE; i++)
        ref[1 + i] = (uint8_t)((uint64_t)s->n_raw >> (8 * i));
    emit(s, ref, sizeof ref);
    s->cut = data + size;
    if (s->out) {
        po_raw_ref r = {data, size};
        PO_PUSH(s->keep, s->raw, s->n_raw, s->cap_raw, r);
    } else {
        s->n_raw++;
    }
}

uint64_t po_raw_number(const ProtobufCBinaryData *raw) {
    if (raw->len != PO_RAW_REF_SIZE)
        return UINT64_MAX;
    uint64_t n = 0;
    for (int i = 0; i < PO_RAW_REF_SIZE; i++)
        n |= (uint64_t)raw->data[i] << (8 * i);
    return n;
}

/* Whether lengths of this message can change: it may hold raw_data. */
static bool holds_raw(const ProtobufCMessageDescriptor *d) {
    return d == &onnx__tensor_proto__descriptor || d == &onnx__attribute_proto__descriptor ||
           d == &onnx__node_proto__descriptor || d == &onnx__graph_proto__descriptor ||
           d == &onnx__sparse_tensor_proto__descriptor || d == &onnx__function_proto__descriptor ||
           d == &onnx__training_info_proto__descriptor;
}

/* --- messages --- */

static unsigned wire_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return WIRE_32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return WIRE_64;
    default:
        return WIRE_VARINT;
    }
}

static po_status packed(scanner *s, const po_place *at, unsigned wire, const uint8_t *p,
                        const uint8_t *end) {
    size_t n = (size_t)(end - p);
    if (wire != WIRE_VARINT) {
        size_t size = wire == WIRE_32 ? 4 : 8;
        if (n % size)
            return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT,
                              "a packed field ends inside a number (found %zu bytes, %zu each)", n,
                              size);
        return charge(s, at, n);
    }
    uint64_t count = 0, value;
    for (; p < end; count++)
        PO_TRY(varint(s, at, &p, end, 10, "a number", &value));
    return charge(s, at, 8 * count);
}

static po_status message(scanner *s, const po_place *at, const ProtobufCMessageDescriptor *d,
                         const uint8_t *p, const uint8_t *end, int depth);

/* A length-delimited field of the schema; `p` is behind its length. */
static po_status delimited(scanner *s, const po_place *at, const ProtobufCMessageDescriptor *d,
                           const ProtobufCFieldDescriptor *field, const uint8_t *tag_end,
                           const uint8_t *p, size_t n, int depth) {
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        bool relength = holds_raw(field->descriptor);
        size_t room = relength ? open_length(s, tag_end, p) : 0;
        PO_TRY(message(s, at, field->descriptor, p, p + n, depth + 1));
        if (relength)
            close_length(s, room, p + n);
        return PO_OK;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING && !po_utf8_valid(p, n))
        return bad(s, at,
                   memchr(p, 0, n) ? "a name or text holds a NUL byte"
                                   : "a name or text is not valid UTF-8");
    if (d == &onnx__tensor_proto__descriptor && strcmp(field->name, "raw_data") == 0) {
        s->size -= n;
        emit_reference(s, tag_end, p, n);
        return charge(s, at, 64);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES)
        return charge(s, at, n + 48);
    return packed(s, at, wire_of(field->type), p, p + n);
}

/* Skips a field's value, any wire type. */
static po_status value(scanner *s, const po_place *at, unsigned wire, const uint8_t **p,
                       const uint8_t *end) {
    uint64_t number;
    size_t n;
    switch (wire) {
    case WIRE_VARINT:
        return varint(s, at, p, end, 10, "a number", &number);
    case WIRE_BYTES:
        PO_TRY(length(s, at, p, end, &n));
        *p += n;
        return PO_OK;
    case WIRE_32:
    case WIRE_64:
        n = wire == WIRE_32 ? 4 : 8;
        if ((size_t)(end - *p) < n)
            return bad(s, at, "a number is cut off");
        *p += n;
        return PO_OK;
    case WIRE_START:
    case WIRE_END:
        return bad(s, at, "a protobuf group (ONNX has none)");
    default:
        return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT, "unknown wire type (found %u)", wire);
    }
}

static bool in_oneof(const ProtobufCFieldDescriptor *field) {
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/* Refuses the second one of a singular field, or of a choice of fields. */
static po_status once(scanner *s, const po_place *at, const ProtobufCMessageDescriptor *d,
                      unsigned index, uint32_t *counts) {
    const ProtobufCFieldDescriptor *field = &d->fields[index];
    if (counts[index]++ == 0 && !in_oneof(field))
        return PO_OK;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return PO_OK;
    if (counts[index] > 1)
        return bad(s, at, "the field is there twice");
    for (unsigned i = 0; i < d->n_fields; i++)
        if (i != index && in_oneof(&d->fields[i]) && counts[i] &&
            d->fields[i].quantifier_offset == field->quantifier_offset)
            return bad(s, at, "two fields are there of which one excludes the other");
    return PO_OK;
}

static po_status message(scanner *s, const po_place *at, const ProtobufCMessageDescriptor *d,
                         const uint8_t *p, const uint8_t *end, int depth) {
    uint32_t counts[MOST_FIELDS] = {0};
    if (depth > PO_SCAN_DEPTH)
        return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT, "nested too deep (limit %d)",
                          PO_SCAN_DEPTH);
    if (d->n_fields > MOST_FIELDS)
        return po_fail(s->ctx, PO_INTERNAL, "message %s has too many fields", d->name);
    PO_TRY(charge(s, at, d->sizeof_message + 64));
    while (p < end) {
        uint64_t tag;
        PO_TRY(varint(s, at, &p, end, 5, "a field's tag", &tag));
        uint64_t number = tag >> 3;
        unsigned wire = (unsigned)(tag & 7);
        const uint8_t *tag_end = p;
        if (number == 0 || number > 0x1fffffff)
            return po_fail_at(s->ctx, s->file, at, PO_BAD_INPUT,
                              "field number %llu is not allowed (limit 1 to 536870911)",
                              (unsigned long long)number);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(d, (unsigned)number);
        if (!field) {
            po_place here = {at, "unknown field", (int64_t)number, NULL};
            const uint8_t *start = p;
            PO_TRY(value(s, &here, wire, &p, end));
            PO_TRY(charge(s, &here, (uint64_t)(p - start) + 64));
            continue;
        }
        unsigned index = (unsigned)(field - d->fields);
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        po_place here = {at, field->name, repeated ? (int64_t)counts[index] : -1, NULL};
        PO_TRY(once(s, &here, d, index, counts));
        unsigned want = wire_of(field->type);
        if (wire != want && !(repeated && wire == WIRE_BYTES)) {
            if (wire == WIRE_START || wire == WIRE_END)
                return bad(s, &here, "a protobuf group (ONNX has none)");
            return po_fail_at(s->ctx, s->file, &here, PO_BAD_INPUT,
                              "the field has the wrong wire type (found %u, want %u)", wire, want);
        }
        if (wire == WIRE_BYTES) {
            size_t n;
            PO_TRY(length(s, &here, &p, end, &n));
            PO_TRY(delimited(s, &here, d, field, tag_end, p, n, depth));
            p += n;
        } else {
            PO_TRY(value(s, &here, wire, &p, end));
            PO_TRY(charge(s, &here, repeated ? 48 : 8));
        }
    }
    return PO_OK;
}

/* --- files that are something else --- */

static const char *other_kind(const uint8_t *data, size_t size) {
    static const struct {
        const char *start, *what;
    } kinds[] = {
        {"version https://git-lfs", "it is a Git LFS pointer: fetch the file itself"},
        {"ir_version:", "it is a model in protobuf's text form (want the binary form)"},
        {"{", "it looks like JSON"},
        {"<", "it looks like XML or HTML"},
        {"PK\003\004", "it is a ZIP archive"},
        {"\x1f\x8b", "it is compressed by gzip"},
        {"\x89HDF", "it is an HDF5 file"},
        {"ORTM", "it is in ONNX Runtime's own format"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].start);
        if (size >= n && memcmp(data, kinds[i].start, n) == 0)
            return kinds[i].what;
    }
    if (size >= 8 && memcmp(data + 4, "ORTM", 4) == 0)
        return kinds[7].what;
    return NULL;
}

po_status po_scan_message(po_ctx *ctx, po_arena *keep, po_arena *scratch, const char *file,
                          const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size,
                          po_scanned *scan) {
    if (size == 0)
        return po_fail(ctx, PO_BAD_INPUT, "%.300s: is empty", file);
    if (size > INT32_MAX)
        return po_fail(ctx, PO_BAD_INPUT,
                       "%.300s: is too large for one file (found %zu bytes, limit %d): protobuf "
                       "ends there, save the weights as external data",
                       file, size, INT32_MAX);
    scanner s = {.ctx = ctx, .keep = keep, .file = file, .size = size, .cut = data};
    po_status status = message(&s, NULL, type, data, data + size, 0);
    const char *what = status == PO_BAD_INPUT ? other_kind(data, size) : NULL;
    if (what) {
        po_ctx_clear(ctx);
        return po_fail(ctx, PO_BAD_INPUT, "%.300s: is not an ONNX model: %s", file, what);
    }
    PO_TRY(status);
    copy_to(&s, data + size);
    scan->skeleton_size = s.out_size;
    scan->skeleton = po_arena_alloc(scratch, s.out_size);
    scanner second = {.ctx = ctx, .keep = keep, .file = file, .size = size, .cut = data};
    second.out = scan->skeleton;
    second.out_room = scan->skeleton_size;
    PO_TRY(message(&second, NULL, type, data, data + size, 0));
    copy_to(&second, data + size);
    if (second.out_size != s.out_size || second.n_raw != s.n_raw)
        return po_fail(ctx, PO_IO, "%.300s: was changed while it was read", file);
    scan->raw = second.raw;
    scan->n_raw = second.n_raw;
    return PO_OK;
}

/* R/T's text with names in the place of numbers, and `..` for as many axes as a map has: written
 * out in full, then read by po_rt_parse. */
#include "ops/move/rt.h"

typedef struct writer {
    po_text text;
    uint32_t n; /* what `..` repeats */
    const po_rt_size *sizes;
    bool left;   /* of the arrow: there extents are stated */
    bool failed; /* a number has no value */
} writer;

enum { NO_INDEX = -1 };

static bool is_letter(char c) {
    return c >= 'a' && c <= 'z';
}

static size_t name_length(const char *at) {
    size_t n = 0;
    while (is_letter(at[n]))
        n++;
    return n;
}

/* The size of that name; of a repeated one, its value on that axis. NULL: none is given. */
static const int64_t *size_of(const writer *w, const char *name, size_t length, int index) {
    for (const po_rt_size *s = w->sizes; s && s->name; s++)
        if (strncmp(s->name, name, length) == 0 && s->name[length] == 0)
            return &s->values[index == NO_INDEX ? 0 : index];
    return NULL;
}

/* A base, a length or a step that has a name: 0 leaves the base out. */
static const char *write_number(writer *w, char mark, const char *at, int index) {
    const size_t length = name_length(at);
    const int64_t *value = size_of(w, at, length, index);
    w->failed = w->failed || !value;
    const int64_t v = value ? *value : 1;
    if (mark == '=' || mark == '*')
        po_text_printf(&w->text, "%c%lld", mark, (long long)v);
    else if (v != 0)
        po_text_printf(&w->text, "%+lld", (long long)(mark == '-' ? -v : v));
    return at + length;
}

static const char *write_name(writer *w, const char *at, int index) {
    const size_t length = name_length(at);
    const int64_t *value = w->left ? size_of(w, at, length, index) : NULL;
    po_text_printf(&w->text, "%.*s", (int)length, at);
    if (index != NO_INDEX)
        po_text_printf(&w->text, "%d", index);
    if (value)
        po_text_printf(&w->text, ":%lld", (long long)*value);
    return at + length;
}

/* One axis or digit, without the dots behind it. */
static void write_item(writer *w, const char *at, const char *end, int index);

/* Where the item that begins here ends: a space, outside of parentheses. */
static const char *item_end(const char *at, const char *end) {
    for (int depth = 0; at < end && (depth || *at != ' '); at++)
        depth += (*at == '(') - (*at == ')');
    return at;
}

static void write_items(writer *w, const char *at, const char *end, int index) {
    while (at < end) {
        const char *last = item_end(at, end), *next = last < end ? last + 1 : last;
        const bool repeated = last - at > 2 && last[-1] == '.' && last[-2] == '.';
        for (uint32_t i = 0; repeated && i < w->n; i++) {
            write_item(w, at, last - 2, (int)i);
            po_text_puts(&w->text, " ");
        }
        if (!repeated) {
            write_item(w, at, last, index);
            po_text_puts(&w->text, " ");
        }
        at = next;
    }
}

static void write_item(writer *w, const char *at, const char *end, int index) {
    if (end - at == 2 && at[0] == '-' && at[1] == '>') {
        w->left = false;
        po_text_puts(&w->text, "->");
        return;
    }
    if (*at == '-') { /* a digit that runs backwards */
        po_text_puts(&w->text, "-");
        at++;
    }
    if (at < end && *at == '(') {
        const char *last = end;
        while (last > at && *last != ')')
            last--;
        po_text_puts(&w->text, "(");
        write_items(w, at + 1, last, index);
        po_text_puts(&w->text, ")");
        at = last + 1;
    } else if (is_letter(*at)) {
        at = write_name(w, at, index);
    }
    while (at < end) {
        const char c = *at++;
        if (strchr("+-=*", c) && is_letter(*at))
            at = write_number(w, c, at, index);
        else
            po_text_printf(&w->text, "%c", c);
    }
}

const po_rt *po_rt_of_names(po_arena *arena, const char *text, uint32_t n, const po_rt_size *sizes,
                            uint32_t rank, const int64_t *dims) {
    writer w = {.n = n, .sizes = sizes, .left = true};
    const po_rt *rt = NULL;
    po_ctx ctx; /* what is wrong with a text is not told further */
    po_ctx_init(&ctx);
    po_text_init(&w.text, arena);
    write_items(&w, text, text + strlen(text), NO_INDEX);
    if (w.failed || po_rt_parse(&ctx, arena, w.text.data, rank, dims, &rt) != PO_OK)
        return NULL;
    return rt;
}

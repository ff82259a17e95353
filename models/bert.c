/* BERT-base of Devlin et al. 2019 (arXiv 1810.04805): 12 layers, 12 heads, 128 tokens. Shapes for
 * the heads are computed from the input at run time, as exporters write them. */
#include "net.h"

enum {
    LAYERS = 12,
    TOKENS = 128,
    WIDTH = 768,
    HEADS = 12,
    INNER = 3072,
    VOCABULARY = 30522,
    POSITIONS = 512
};

/* Element `index` of x's shape, as a vector of one. */
static po_val length_of(net *n, po_val x, int64_t index) {
    po_val in[2] = {net_op1(n, "Shape", x), po_build_data(n->b, NULL, "i64", 0, NULL, &index)};
    po_val dim = po_build_node(n->b, NULL, "Gather", NULL, 2, in);
    po_build_attr_int(n->b, dim, "axis", 0);
    return net_op2(n, "Unsqueeze", dim, po_build_i64(n->b, 1, (int64_t[]){0}));
}

/* x with its last axes replaced by these. */
static po_val reshaped(net *n, po_val x, size_t count, const int64_t *dims) {
    po_val parts[4] = {length_of(n, x, 0), length_of(n, x, 1)};
    for (size_t i = 0; i < count; i++)
        parts[2 + i] = po_build_i64(n->b, 1, &dims[i]);
    return net_op2(n, "Reshape", x, net_concat(n, 2 + count, parts, 0));
}

/* Queries, keys or values: [batch, tokens, width] to [batch, heads, ...] by the permutation. */
static po_val heads(net *n, po_val x, const char *name, const int64_t *perm) {
    static const int64_t split[2] = {HEADS, WIDTH / HEADS};
    return net_transpose(n, reshaped(n, net_linear(n, x, name, WIDTH, WIDTH), 2, split), 4, perm);
}

static po_val attention(net *n, po_val x, po_val mask, const char *name) {
    static const int64_t forward[4] = {0, 2, 1, 3}, turned[4] = {0, 2, 3, 1};
    static const int64_t joined[1] = {WIDTH};
    name_buffer buffer;
    po_val q = heads(n, x, name_of(&buffer, "%s.attention.self.query", name), forward);
    po_val k = heads(n, x, name_of(&buffer, "%s.attention.self.key", name), turned);
    po_val v = heads(n, x, name_of(&buffer, "%s.attention.self.value", name), forward);
    po_val scores = net_op2(n, "Div", net_op2(n, "MatMul", q, k), po_build_f32(n->b, 8));
    po_val weights = net_op1(n, "Softmax", net_op2(n, "Add", scores, mask));
    po_build_attr_int(n->b, weights, "axis", -1);
    po_val mixed = net_transpose(n, net_op2(n, "MatMul", weights, v), 4, forward);
    mixed = reshaped(n, mixed, 1, joined);
    mixed = net_linear(n, mixed, name_of(&buffer, "%s.attention.output.dense", name), WIDTH, WIDTH);
    return net_layer_norm(n, net_op2(n, "Add", mixed, x),
                          name_of(&buffer, "%s.attention.output.LayerNorm", name), WIDTH, 1e-12f);
}

static po_val feed_forward(net *n, po_val x, const char *name) {
    name_buffer buffer;
    po_val y = net_linear(n, x, name_of(&buffer, "%s.intermediate.dense", name), WIDTH, INNER);
    y = net_linear(n, net_gelu(n, y), name_of(&buffer, "%s.output.dense", name), INNER, WIDTH);
    return net_layer_norm(n, net_op2(n, "Add", y, x), name_of(&buffer, "%s.output.LayerNorm", name),
                          WIDTH, 1e-12f);
}

static po_val embedding(net *n, const char *name, int64_t rows, po_val ids) {
    po_val in[2] = {net_weight(n, name, 2, (int64_t[]){rows, WIDTH}, 24), ids};
    return po_build_node(n->b, NULL, "Gather", NULL, 2, in);
}

/* 0 where a token counts, the lowest float where it does not: [batch, 1, 1, tokens]. */
static po_val mask_of(net *n, po_val attention_mask) {
    po_val m = net_op2(n, "Unsqueeze", attention_mask, po_build_i64(n->b, 1, (int64_t[]){1}));
    m = net_op2(n, "Unsqueeze", m, po_build_i64(n->b, 1, (int64_t[]){2}));
    m = net_op1(n, "Cast", m);
    po_build_attr_int(n->b, m, "to", 1);
    m = net_op2(n, "Sub", po_build_f32(n->b, 1), m);
    return net_op2(n, "Mul", m, po_build_f32(n->b, -3.40282347e38f));
}

void build_bert_base(net *n) {
    name_buffer type, name;
    int64_t ids[TOKENS], first = 0;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = i;
    name_of(&type, "i64[%lld,%d]", (long long)net_batch(n, 1), TOKENS);
    po_val tokens = po_build_input(n->b, "input_ids", type.text);
    po_val attended = po_build_input(n->b, "attention_mask", type.text);
    po_val segments = po_build_input(n->b, "token_type_ids", type.text);
    po_val mask = mask_of(n, attended);

    po_val x = embedding(n, "embeddings.word_embeddings.weight", VOCABULARY, tokens);
    x = net_op2(n, "Add", x, embedding(n, "embeddings.token_type_embeddings.weight", 2, segments));
    po_val places =
        po_build_data(n->b, "embeddings.position_ids", "i64", 2, (int64_t[]){1, TOKENS}, ids);
    x = net_op2(n, "Add", x,
                embedding(n, "embeddings.position_embeddings.weight", POSITIONS, places));
    x = net_layer_norm(n, x, "embeddings.LayerNorm", WIDTH, 1e-12f);
    for (int i = 0; i < LAYERS; i++) {
        name_of(&name, "encoder.layer.%d", i);
        x = feed_forward(n, attention(n, x, mask, name.text), name.text);
    }
    po_val in[2] = {x, po_build_data(n->b, NULL, "i64", 0, NULL, &first)};
    po_val pooled = po_build_node(n->b, NULL, "Gather", NULL, 2, in);
    po_build_attr_int(n->b, pooled, "axis", 1);
    pooled = net_op1(n, "Tanh", net_linear(n, pooled, "pooler.dense", WIDTH, WIDTH));
    po_build_output(n->b, x, "last_hidden_state");
    po_build_output(n->b, pooled, "pooler_output");
}

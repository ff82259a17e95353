/* petopt-models [--f16] [--batch N] OUTDIR [name...]: writes the benchmark networks, all or those
 * named. The blocks of papers have f16 forms, Mirage's and PET's networks other batches too:
 * NAME_f16_bN.onnx. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPSET = 13, SEED = 20190600 };

static const struct {
    const char *name;
    void (*build)(net *n);
    bool block, batched; /* has a form in f16; in other batches */
} networks[] = {
    {"resnet18", build_resnet18, false, true},
    {"inception_v3", build_inception_v3, false, true},
    {"csrnet", build_csrnet, false, true},
    {"bert_base", build_bert_base, false, true},
    {"resnet3d18", build_resnet3d18, false, true},
    {"resnet3d18_8", build_resnet3d18_8, false, false},
    {"gqa", build_gqa, true, true},
    {"qknorm", build_qknorm, true, true},
    {"rmsnorm_linear", build_rmsnorm_linear, true, true},
    {"lora", build_lora, true, true},
    {"gated_mlp", build_gated_mlp, true, true},
    {"ntrans", build_ntrans, true, true},
    {"bytes", build_bytes, false, false},
    {"tcn", build_tcn, false, false},
    {"conformer", build_conformer, false, false},
    {"wav2vec", build_wav2vec, false, false},
    {"convnext", build_convnext, false, false},
    {"yolo", build_yolo, false, false},
    {"unet", build_unet, false, false},
    {"line", build_line, false, false},
    {"mobilenet_v2", build_mobilenet_v2, false, false},
    {"resnext50", build_resnext50, false, false},
    {"dcgan", build_dcgan, false, false},
    {"segformer", build_segformer, false, false},
    {"upscale", build_upscale, false, false},
    {"densenet121", build_densenet121, false, false},
    {"trinity_vanilla", build_vanilla, true, false},
    {"trinity_prenorm", build_prenorm, true, false},
    {"trinity_qknorm", build_qknorm_block, true, false},
    {"trinity_keyformer", build_keyformer, true, false},
    {"trinity_roco", build_roco, true, false},
    {"trinity_swiglu", build_swiglu, true, false},
    {"u2net", build_u2net, false, false},
    {"upernet", build_upernet, false, false},
    {"deeplab", build_deeplab, false, false},
    {"hrnet_head", build_hrnet_head, false, false},
    {"midas_head", build_midas_head, false, false},
};
enum { COUNT = sizeof networks / sizeof networks[0] };

typedef struct options {
    bool half;
    int64_t batch;
} options;

static int write_one(size_t i, const char *folder, const options *o) {
    char path[4096], batch[32] = "";
    bool half = o->half && networks[i].block;
    if (o->batch > 0 && networks[i].batched)
        (void)snprintf(batch, sizeof batch, "_b%lld", (long long)o->batch);
    int size = snprintf(path, sizeof path, "%s/%s%s%s.onnx", folder, networks[i].name,
                        half ? "_f16" : "", batch);
    if (size < 0 || (size_t)size >= sizeof path) {
        fprintf(stderr, "petopt-models: the folder's name is too long\n");
        return 2;
    }
    /* Each network has its own range of seeds. */
    net n = {po_build_create(networks[i].name, OPSET), SEED + 100000 * (uint64_t)i, half,
             *batch ? o->batch : 0};
    po_error error;
    po_model *model;
    if (n.b)
        networks[i].build(&n);
    po_status status = po_build_finish(n.b, &model, &error);
    if (status == PO_OK)
        status = po_model_save(model, path, &error);
    po_model_free(model);
    if (status != PO_OK) {
        fprintf(stderr, "petopt-models: %s: %s\n", networks[i].name, error.message);
        return status == PO_INTERNAL ? 3 : 2;
    }
    printf("%s\n", path);
    return 0;
}

static int find(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(networks[i].name, name) == 0)
            return i;
    return -1;
}

static int usage(void) {
    fprintf(stderr, "usage: petopt-models [--f16] [--batch N] OUTDIR [name...]\nnames:");
    for (int i = 0; i < COUNT; i++)
        fprintf(stderr, " %s", networks[i].name);
    fprintf(stderr, "\n--f16: of");
    for (int i = 0; i < COUNT; i++)
        if (networks[i].block)
            fprintf(stderr, " %s", networks[i].name);
    fprintf(stderr, "\n--batch: of");
    for (int i = 0; i < COUNT; i++)
        if (networks[i].batched)
            fprintf(stderr, " %s", networks[i].name);
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv) {
    options o = {false, 0};
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--f16") == 0)
            o.half = true;
        else if (strcmp(argv[at], "--batch") == 0 && at + 1 < argc)
            o.batch = strtoll(argv[++at], NULL, 10);
        else
            return usage();
    }
    if (at >= argc || o.batch < 0)
        return usage();
    for (int i = at + 1; i < argc; i++)
        if (find(argv[i]) < 0) {
            fprintf(stderr, "petopt-models: there is no network '%s'\n", argv[i]);
            return 2;
        }
    const char *folder = argv[at];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "petopt-models: %s: %s\n", folder, strerror(errno));
        return 2;
    }
    int worst = 0;
    bool named = at + 1 < argc;
    /* All: with an option, the blocks that it is for; else all but Trinity's, which are large. */
    for (int i = named ? at + 1 : 0; i < (named ? argc : COUNT); i++) {
        size_t which = (size_t)(named ? find(argv[i]) : i);
        bool wanted = named || (o.batch > 0 ? networks[which].block && networks[which].batched
                                : o.half    ? networks[which].block
                                            : !networks[which].block || networks[which].batched);
        int code = wanted ? write_one(which, folder, &o) : 0;
        worst = code > worst ? code : worst;
    }
    return worst;
}

/* petopt-models OUTDIR [name...]: writes the benchmark networks, all or those named. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { OPSET = 13, SEED = 20190600 };

static const struct {
    const char *name;
    void (*build)(net *n);
} networks[] = {
    {"resnet18", build_resnet18},
    {"inception_v3", build_inception_v3},
    {"csrnet", build_csrnet},
    {"bert_base", build_bert_base},
    {"resnet3d18", build_resnet3d18},
    {"resnet3d18_8", build_resnet3d18_8},
    {"gqa", build_gqa},
    {"qknorm", build_qknorm},
    {"rmsnorm_linear", build_rmsnorm_linear},
    {"lora", build_lora},
    {"gated_mlp", build_gated_mlp},
    {"ntrans", build_ntrans},
    {"bytes", build_bytes},
    {"tcn", build_tcn},
    {"conformer", build_conformer},
    {"wav2vec", build_wav2vec},
    {"convnext", build_convnext},
    {"yolo", build_yolo},
    {"unet", build_unet},
    {"line", build_line},
    {"mobilenet_v2", build_mobilenet_v2},
    {"resnext50", build_resnext50},
    {"dcgan", build_dcgan},
};
enum { COUNT = sizeof networks / sizeof networks[0] };

static int write_one(size_t i, const char *folder) {
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/%s.onnx", folder, networks[i].name);
    if (size < 0 || (size_t)size >= sizeof path) {
        fprintf(stderr, "petopt-models: the folder's name is too long\n");
        return 2;
    }
    /* Each network has its own range of seeds. */
    net n = {po_build_create(networks[i].name, OPSET), SEED + 100000 * (uint64_t)i};
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

int main(int argc, char **argv) {
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: petopt-models OUTDIR [name...]\nnames:");
        for (int i = 0; i < COUNT; i++)
            fprintf(stderr, " %s", networks[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        if (find(argv[i]) < 0) {
            fprintf(stderr, "petopt-models: there is no network '%s'\n", argv[i]);
            return 2;
        }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "petopt-models: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    int worst = 0;
    for (int i = argc > 2 ? 2 : 0; i < (argc > 2 ? argc : COUNT); i++) {
        int code = write_one((size_t)(argc > 2 ? find(argv[i]) : i), argv[1]);
        worst = code > worst ? code : worst;
    }
    return worst;
}

// drive LIBRARY NAME TENSOR...: drives a plugin of a library as TensorRT would: from its creator to
// enqueue on a stream, serialised and made again on the way. A TENSOR is
// in|weight|out:TYPE:DIMS:FILE (dims with commas; raw elements; outputs are written). Exit codes:
// 0; 1 with what is wrong.
#include <NvInferRuntime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

using namespace nvinfer1;

#define EXPECT(truth, ...)                                                                         \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, " (%s:%d)\n", __FILE__, __LINE__);                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

namespace {

// --- tensors ---

struct Tensor {
    bool out;
    PluginTensorDesc desc;
    std::string file;
    std::vector<char> bytes;
    uint64_t memory;
};

Tensor parse(std::string const &text) {
    std::vector<std::string> parts;
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        size_t colon = text.find(':', at);
        EXPECT(colon != std::string::npos, "%s: no tensor", text.c_str());
        parts.push_back(text.substr(at, colon - at));
        at = colon + 1;
    }
    Tensor t = {};
    t.out = parts[0] == "out";
    t.file = text.substr(at);
    t.desc.type = parts[1] == "f16"    ? DataType::kHALF
                  : parts[1] == "bf16" ? DataType::kBF16
                                       : DataType::kFLOAT;
    t.desc.format = TensorFormat::kLINEAR;
    size_t bytes = t.desc.type == DataType::kFLOAT ? 4 : 2;
    for (char *p = &parts[2][0]; *p; p += *p == ',') {
        int64_t d = strtol(p, &p, 10);
        t.desc.dims.d[t.desc.dims.nbDims++] = d;
        bytes *= static_cast<size_t>(d);
    }
    t.bytes.resize(bytes);
    if (!t.out) {
        FILE *f = fopen(t.file.c_str(), "rb");
        EXPECT(f && fread(t.bytes.data(), 1, bytes, f) == bytes, "%s", t.file.c_str());
        fclose(f);
    }
    return t;
}

struct Expression final : IDimensionExpr {
    int64_t value = 0;
    bool isConstant() const noexcept override {
        return true;
    }
    int64_t getConstantValue() const noexcept override {
        return value;
    }
};

struct Builder final : IExprBuilder {
    std::vector<std::unique_ptr<Expression>> made;
    IDimensionExpr const *constant(int64_t value) noexcept override {
        made.push_back(std::make_unique<Expression>());
        made.back()->value = value;
        return made.back().get();
    }
};

struct Logger final : ILogger {
    std::string last;
    void log(Severity, AsciiChar const *text) noexcept override {
        last = text;
    }
};

struct Finder final : ILoggerFinder {
    Logger logger;
    ILogger *findLogger() override {
        return &logger;
    }
};

Finder finder;

// --- the driver ---

template <class F> F *symbol(void *library, char const *name) {
    void *found = dlsym(library, name);
    EXPECT(found, "%s is missing", name);
    F *f;
    memcpy(&f, &found, sizeof f);
    return f;
}

struct Driver {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *context = nullptr, *stream = nullptr;
    template <class... A> void call(char const *name, A... a) {
        int code = symbol<int(A...)>(library, name)(a...);
        EXPECT(code == 0, "%s: %d", name, code);
    }
    void open() {
        EXPECT(library, "no driver");
        call("cuInit", 0u);
        call("cuDevicePrimaryCtxRetain", &context, 0);
        call("cuCtxSetCurrent", context);
        call("cuStreamCreate", &stream, 1u);
    }
};

// --- a plugin ---

struct Case {
    std::vector<Tensor> tensors; // inputs, weights, outputs
    int32_t n_in = 0, n_out = 0;
    std::vector<DynamicPluginTensorDesc> dynamic;
    std::vector<PluginTensorDesc> fixed;

    void add(Tensor const &t) {
        tensors.push_back(t);
        (t.out ? n_out : n_in)++;
        dynamic.push_back({t.desc, t.desc.dims, t.desc.dims, t.desc.dims});
        fixed.push_back(t.desc);
    }
};

template <class T> T *capability(IPluginV3 *plugin, PluginCapabilityType type, char const *kind) {
    IPluginCapability *c = plugin->getCapabilityInterface(type);
    EXPECT(c && strcmp(c->getInterfaceInfo().kind, kind) == 0, "no capability %s", kind);
    return static_cast<T *>(c);
}

void look_at_core(IPluginV3 *plugin, char const *name) {
    auto core =
        capability<IPluginV3OneCore>(plugin, PluginCapabilityType::kCORE, "PLUGIN_V3ONE_CORE");
    EXPECT(strcmp(core->getPluginName(), name) == 0, "name %s", core->getPluginName());
    EXPECT(strcmp(core->getPluginVersion(), "1") == 0, "version %s", core->getPluginVersion());
    EXPECT(strcmp(core->getPluginNamespace(), "petopt.kernels") == 0, "namespace");
}

// Returns the bytes of workspace.
size_t build(IPluginV3 *plugin, Case &c) {
    auto b =
        capability<IPluginV3OneBuild>(plugin, PluginCapabilityType::kBUILD, "PLUGIN_V3ONE_BUILD");
    EXPECT(b->getNbOutputs() == c.n_out, "%d outputs", b->getNbOutputs());
    std::vector<DataType> in, out(static_cast<size_t>(c.n_out));
    for (int32_t i = 0; i < c.n_in; i++)
        in.push_back(c.fixed[static_cast<size_t>(i)].type);
    EXPECT(b->getOutputDataTypes(out.data(), c.n_out, in.data(), c.n_in) == 0, "data types");
    std::vector<DimsExprs> in_dims(static_cast<size_t>(c.n_in)),
        out_dims(static_cast<size_t>(c.n_out));
    Builder builder;
    for (size_t i = 0; i < in_dims.size(); i++) {
        Dims const &d = c.fixed[i].dims;
        in_dims[i].nbDims = d.nbDims;
        for (int32_t k = 0; k < d.nbDims; k++)
            in_dims[i].d[k] = builder.constant(d.d[k]);
    }
    EXPECT(b->getOutputShapes(in_dims.data(), c.n_in, nullptr, 0, out_dims.data(), c.n_out,
                              builder) == 0,
           "output shapes");
    for (size_t i = 0; i < out.size(); i++) {
        PluginTensorDesc const &right = c.fixed[static_cast<size_t>(c.n_in) + i];
        EXPECT(out[i] == right.type, "type of output %zu", i);
        EXPECT(out_dims[i].nbDims == right.dims.nbDims, "rank of output %zu", i);
        for (int32_t k = 0; k < right.dims.nbDims; k++)
            EXPECT(out_dims[i].d[k]->getConstantValue() == right.dims.d[k], "output %zu", i);
    }
    for (int32_t i = 0; i < c.n_in + c.n_out; i++) {
        PluginTensorDesc &d = c.dynamic[static_cast<size_t>(i)].desc;
        PluginTensorDesc was = d;
        EXPECT(b->supportsFormatCombination(i, c.dynamic.data(), c.n_in, c.n_out), "format %d", i);
        d.type = DataType::kINT32;
        EXPECT(!b->supportsFormatCombination(i, c.dynamic.data(), c.n_in, c.n_out), "int32 %d", i);
        d = was;
        d.format = TensorFormat::kCHW2;
        EXPECT(!b->supportsFormatCombination(i, c.dynamic.data(), c.n_in, c.n_out), "CHW2 %d", i);
        d = was;
        d.dims.d[0]++;
        EXPECT(b->configurePlugin(c.dynamic.data(), c.n_in, c.dynamic.data() + c.n_in, c.n_out) !=
                   0,
               "another shape of tensor %d was taken", i);
        EXPECT(finder.logger.last.find("shape") != std::string::npos, "said: %s",
               finder.logger.last.c_str());
        d = was;
    }
    EXPECT(b->configurePlugin(c.dynamic.data(), c.n_in - 1, c.dynamic.data() + c.n_in, c.n_out) !=
               0,
           "an input less was taken");
    EXPECT(b->configurePlugin(c.dynamic.data(), c.n_in, c.dynamic.data() + c.n_in, c.n_out) == 0,
           "configurePlugin");
    return b->getWorkspaceSize(c.dynamic.data(), c.n_in, c.dynamic.data() + c.n_in, c.n_out);
}

// Through the fields that an engine keeps.
IPluginV3 *again(IPluginCreatorV3One *creator, IPluginV3 *plugin) {
    auto r = capability<IPluginV3OneRuntime>(plugin, PluginCapabilityType::kRUNTIME,
                                             "PLUGIN_V3ONE_RUNTIME");
    PluginFieldCollection const *fields = r->getFieldsToSerialize();
    EXPECT(fields && fields->nbFields == 1, "fields");
    std::vector<char> kept(static_cast<char const *>(fields->fields[0].data),
                           static_cast<char const *>(fields->fields[0].data) +
                               fields->fields[0].length);
    PluginField field(fields->fields[0].name, kept.data(), fields->fields[0].type,
                      fields->fields[0].length);
    PluginFieldCollection read = {1, &field}, none = {0, nullptr};
    IPluginV3 *made = creator->createPlugin("x", &read, TensorRTPhase::kRUNTIME);
    EXPECT(made, "not made again");
    EXPECT(!creator->createPlugin("x", &none, TensorRTPhase::kRUNTIME), "made of nothing");
    kept[0]++;
    EXPECT(!creator->createPlugin("x", &read, TensorRTPhase::kRUNTIME), "made of another region");
    return made;
}

void run(Driver &driver, IPluginV3 *plugin, Case &c, size_t workspace) {
    auto r = capability<IPluginV3OneRuntime>(plugin, PluginCapabilityType::kRUNTIME,
                                             "PLUGIN_V3ONE_RUNTIME");
    IPluginV3 *attached = r->attachToContext(nullptr);
    EXPECT(attached, "not attached");
    r = capability<IPluginV3OneRuntime>(attached, PluginCapabilityType::kRUNTIME,
                                        "PLUGIN_V3ONE_RUNTIME");
    size_t n_in = static_cast<size_t>(c.n_in);
    EXPECT(r->onShapeChange(c.fixed.data(), c.n_in, c.fixed.data() + n_in, c.n_out) == 0, "shapes");
    std::vector<void const *> in;
    std::vector<void *> out;
    for (Tensor &t : c.tensors) {
        driver.call("cuMemAlloc_v2", &t.memory, t.bytes.size());
        if (t.out)
            out.push_back(reinterpret_cast<void *>(t.memory));
        else
            in.push_back(reinterpret_cast<void *>(t.memory));
        if (!t.out)
            driver.call("cuMemcpyHtoD_v2", t.memory, static_cast<void const *>(t.bytes.data()),
                        t.bytes.size());
    }
    uint64_t room = 0;
    if (workspace)
        driver.call("cuMemAlloc_v2", &room, workspace);
    void *space = reinterpret_cast<void *>(room);
    for (int turn = 0; turn < 2; turn++) // loaded, and loaded already
        EXPECT(r->enqueue(c.fixed.data(), c.fixed.data() + n_in, in.data(), out.data(), space,
                          static_cast<cudaStream_t>(driver.stream)) == 0,
               "enqueue: %s", finder.logger.last.c_str());
    driver.call("cuStreamSynchronize", driver.stream);
    in[0] = static_cast<char const *>(in[0]) + 2;
    EXPECT(r->enqueue(c.fixed.data(), c.fixed.data() + n_in, in.data(), out.data(), space,
                      static_cast<cudaStream_t>(driver.stream)) != 0,
           "memory that is not aligned was taken");
    EXPECT(finder.logger.last.find("aligned") != std::string::npos, "said: %s",
           finder.logger.last.c_str());
    delete attached;
    for (Tensor &t : c.tensors) {
        if (t.out) {
            driver.call("cuMemcpyDtoH_v2", static_cast<void *>(t.bytes.data()), t.memory,
                        t.bytes.size());
            FILE *f = fopen(t.file.c_str(), "wb");
            EXPECT(f && fwrite(t.bytes.data(), 1, t.bytes.size(), f) == t.bytes.size() &&
                       fclose(f) == 0,
                   "%s", t.file.c_str());
        }
        driver.call("cuMemFree_v2", t.memory);
    }
    if (workspace)
        driver.call("cuMemFree_v2", room);
}

} // namespace

int main(int argc, char **argv) {
    EXPECT(argc > 3, "drive LIBRARY NAME TENSOR...");
    Case c;
    for (int i = 3; i < argc; i++)
        c.add(parse(argv[i]));
    Driver driver;
    driver.open();
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library, "%s", dlerror());
    symbol<void(ILoggerFinder *)>(library, "setLoggerFinder")(&finder);
    int32_t n = 0;
    IPluginCreatorInterface *const *creators =
        symbol<IPluginCreatorInterface *const *(int32_t &)>(library, "getCreators")(n);
    IPluginCreatorV3One *creator = nullptr;
    for (int32_t i = 0; i < n; i++) {
        EXPECT(strcmp(creators[i]->getInterfaceInfo().kind, "PLUGIN CREATOR_V3ONE") == 0, "kind");
        auto one = static_cast<IPluginCreatorV3One *>(creators[i]);
        EXPECT(strcmp(one->getPluginVersion(), "1") == 0, "version");
        EXPECT(strcmp(one->getPluginNamespace(), "petopt.kernels") == 0, "namespace");
        if (strcmp(one->getPluginName(), argv[2]) == 0)
            creator = one;
    }
    EXPECT(creator && creator->getFieldNames()->nbFields == 0, "%s is not among %d", argv[2], n);
    PluginFieldCollection none = {0, nullptr};
    IPluginV3 *first = creator->createPlugin("x", &none, TensorRTPhase::kBUILD);
    EXPECT(first && strcmp(first->getInterfaceInfo().kind, "PLUGIN") == 0, "not made");
    look_at_core(first, argv[2]);
    IPluginV3 *second = first->clone();
    delete first;
    look_at_core(second, argv[2]);
    size_t workspace = build(second, c);
    IPluginV3 *third = again(creator, second);
    delete second;
    look_at_core(third, argv[2]);
    run(driver, third, c, workspace);
    delete third;
    return 0;
}

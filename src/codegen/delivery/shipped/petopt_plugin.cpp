// The kernels of this folder as TensorRT plugins: one for each region in ../petopt_table.c, by the
// name that its node has in the model. TensorRT 10 or later; see ../README.md.
#include "../petopt_table.h"

#include <NvInferRuntime.h>

#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace {

using namespace nvinfer1;

// What the model's nodes say in their attributes plugin_version and plugin_namespace.
constexpr char const *kVersion = "1";
constexpr char const *kNamespace = "petopt.kernels";
// The one field that an engine keeps: which region it was built with.
constexpr char const *kField = "region";

ILoggerFinder *logger_finder = nullptr;

void complain(pk_region const &region, char const *why) noexcept {
    ILogger *logger = logger_finder ? logger_finder->findLogger() : nullptr;
    char text[PK_WHY + 200];
    snprintf(text, sizeof text, "petopt.kernels, %s: %s", region.name, why);
    if (logger)
        logger->log(ILogger::Severity::kERROR, text);
    else
        fprintf(stderr, "%s\n", text);
}

pk_program const &programOf(pk_region const &region) {
    return *static_cast<pk_program const *>(region.code);
}

DataType typeOf(int type) {
    return type == PK_F16 ? DataType::kHALF : type == PK_BF16 ? DataType::kBF16 : DataType::kFLOAT;
}

// Activations, weights, outputs: in the order in which TensorRT counts them.
size_t inputs(pk_region const &region) {
    return region.n_in + region.n_weights;
}

DataType typeAt(pk_region const &region, size_t pos) {
    if (pos < region.n_in)
        return typeOf(region.in[pos].type);
    if (pos < inputs(region))
        return typeOf(region.weight_types ? region.weight_types[pos - region.n_in] : PK_F32);
    return typeOf(region.out[pos - inputs(region)].type);
}

// The port of an activation or an output.
pk_port const &portAt(pk_region const &region, size_t pos) {
    return pos < region.n_in ? region.in[pos] : region.out[pos - inputs(region)];
}

// The first input that says how many samples there are; the number of inputs: all is static.
size_t sampled(pk_region const &region) {
    for (size_t i = 0; i < region.n_in; i++)
        if (region.in[i].rank > 0 && region.in[i].dims[0] < 0)
            return i;
    return inputs(region);
}

// samples: -1: not known yet, or not known when the engine is built.
bool hasShape(pk_region const &region, size_t pos, Dims const &dims, int64_t &samples) {
    if (pos >= region.n_in && pos < inputs(region)) { // a weight: so many elements
        int64_t count = 1;
        for (int32_t i = 0; i < dims.nbDims; i++)
            count *= dims.d[i];
        return count == region.weight_elements[pos - region.n_in];
    }
    pk_port const &port = portAt(region, pos);
    if (dims.nbDims < 0 || static_cast<size_t>(dims.nbDims) != port.rank)
        return false;
    for (size_t i = 0; i < port.rank; i++) {
        if (port.dims[i] < 0 && samples < 0)
            samples = dims.d[i];
        if (dims.d[i] != (port.dims[i] < 0 ? samples : port.dims[i]))
            return false;
    }
    return true;
}

// Whether tensors are what the kernels were made for.
bool fits(pk_region const &region, size_t pos, PluginTensorDesc const &desc, int64_t &samples) {
    if (desc.type != typeAt(region, pos) || desc.format != TensorFormat::kLINEAR ||
        !hasShape(region, pos, desc.dims, samples)) {
        char why[PK_WHY];
        snprintf(why, sizeof why, "tensor %zu has not the type, layout or shape of its kernels",
                 pos);
        complain(region, why);
        return false;
    }
    return true;
}

class Plugin final : public IPluginV3,
                     public IPluginV3OneCore,
                     public IPluginV3OneBuild,
                     public IPluginV3OneRuntime {
  public:
    explicit Plugin(pk_region const &of) : region(of) {
        pk_loader_init(&loader, pk_driver_get(), &programOf(of));
        name = region.name;
        field = PluginField(kField, name, PluginFieldType::kCHAR,
                            static_cast<int32_t>(strlen(name)) + 1);
        fields.nbFields = 1;
        fields.fields = &field;
    }
    Plugin(Plugin const &) = delete;
    Plugin &operator=(Plugin const &) = delete;
    ~Plugin() override {
        pk_loader_free(&loader);
    }

    // IPluginV3
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override {
        switch (type) {
        case PluginCapabilityType::kCORE:
            return static_cast<IPluginV3OneCore *>(this);
        case PluginCapabilityType::kBUILD:
            return static_cast<IPluginV3OneBuild *>(this);
        case PluginCapabilityType::kRUNTIME:
            return static_cast<IPluginV3OneRuntime *>(this);
        }
        return nullptr;
    }
    IPluginV3 *clone() noexcept override {
        return new (std::nothrow) Plugin(region);
    }

    // IPluginV3OneCore
    AsciiChar const *getPluginName() const noexcept override {
        return region.name;
    }
    AsciiChar const *getPluginVersion() const noexcept override {
        return kVersion;
    }
    AsciiChar const *getPluginNamespace() const noexcept override {
        return kNamespace;
    }

    // IPluginV3OneBuild
    int32_t getNbOutputs() const noexcept override {
        return static_cast<int32_t>(region.n_out);
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const *in, int32_t nbInputs,
                            DynamicPluginTensorDesc const *out,
                            int32_t nbOutputs) noexcept override {
        if (!counts(nbInputs, nbOutputs))
            return -1;
        int64_t samples = -1;
        for (size_t i = 0; i < inputs(region) + region.n_out; i++)
            if (!fits(region, i, i < inputs(region) ? in[i].desc : out[i - inputs(region)].desc,
                      samples))
                return -1;
        return 0;
    }
    int32_t getOutputDataTypes(DataType *outputTypes, int32_t nbOutputs, DataType const *,
                               int32_t nbInputs) const noexcept override {
        if (!counts(nbInputs, nbOutputs))
            return -1;
        for (size_t i = 0; i < region.n_out; i++)
            outputTypes[i] = typeOf(region.out[i].type);
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const *in, int32_t nbInputs, DimsExprs const *, int32_t,
                            DimsExprs *outputs, int32_t nbOutputs,
                            IExprBuilder &builder) noexcept override {
        if (!counts(nbInputs, nbOutputs))
            return -1;
        for (size_t i = 0; i < region.n_out; i++) {
            outputs[i].nbDims = static_cast<int32_t>(region.out[i].rank);
            for (size_t k = 0; k < region.out[i].rank; k++)
                outputs[i].d[k] = region.out[i].dims[k] < 0
                                      ? in[sampled(region)].d[0]
                                      : builder.constant(region.out[i].dims[k]);
        }
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *inOut,
                                   int32_t nbInputs, int32_t nbOutputs) noexcept override {
        return counts(nbInputs, nbOutputs) && pos >= 0 && pos < nbInputs + nbOutputs &&
               inOut[pos].desc.type == typeAt(region, static_cast<size_t>(pos)) &&
               inOut[pos].desc.format == TensorFormat::kLINEAR;
    }
    size_t getWorkspaceSize(DynamicPluginTensorDesc const *in, int32_t,
                            DynamicPluginTensorDesc const *, int32_t) const noexcept override {
        int right = 0;
        size_t of = sampled(region);
        return pk_device_bytes(&programOf(region), of < region.n_in ? in[of].max.d[0] : 1, &right);
    }

    // IPluginV3OneRuntime
    int32_t onShapeChange(PluginTensorDesc const *in, int32_t nbInputs, PluginTensorDesc const *out,
                          int32_t nbOutputs) noexcept override {
        if (!counts(nbInputs, nbOutputs))
            return -1;
        int64_t samples = -1;
        for (size_t i = 0; i < inputs(region) + region.n_out; i++)
            if (!fits(region, i, i < inputs(region) ? in[i] : out[i - inputs(region)], samples))
                return -1;
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const *inDesc, PluginTensorDesc const *, void const *const *in,
                    void *const *out, void *workspace, cudaStream_t stream) noexcept override {
        char why[PK_WHY] = "";
        auto base = reinterpret_cast<uintptr_t>(workspace);
        char *device = static_cast<char *>(workspace);
        if (device)
            device += (PK_DEVICE_ALIGN - base % PK_DEVICE_ALIGN) % PK_DEVICE_ALIGN;
        size_t of = sampled(region);
        pk_data data = {in, in + region.n_in, out, device,
                        of < region.n_in ? inDesc[of].dims.d[0] : 1};
        if (pk_run_on(&loader, &data, stream, why))
            return 0;
        complain(region, why);
        return -1;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override {
        return clone();
    }
    PluginFieldCollection const *getFieldsToSerialize() noexcept override {
        return &fields;
    }

  private:
    bool counts(int32_t nbInputs, int32_t nbOutputs) const {
        return nbInputs >= 0 && nbOutputs >= 0 && static_cast<size_t>(nbInputs) == inputs(region) &&
               static_cast<size_t>(nbOutputs) == region.n_out;
    }

    pk_region const &region;
    pk_loader loader;
    char const *name;
    PluginField field;
    PluginFieldCollection fields;
};

class Creator final : public IPluginCreatorV3One {
  public:
    explicit Creator(pk_region const &of) : region(of) {
        fields.nbFields = 0;
        fields.fields = nullptr;
    }

    // From an engine only one with the field of this very region is taken.
    IPluginV3 *createPlugin(AsciiChar const *, PluginFieldCollection const *collection,
                            TensorRTPhase phase) noexcept override {
        bool same = phase == TensorRTPhase::kBUILD;
        for (int32_t i = 0; collection && i < collection->nbFields; i++) {
            PluginField const &f = collection->fields[i];
            size_t length = strlen(region.name) + 1;
            if (phase == TensorRTPhase::kRUNTIME && strcmp(f.name, kField) == 0)
                same = f.length == static_cast<int32_t>(length) &&
                       memcmp(f.data, region.name, length) == 0;
        }
        pk_driver const *driver = pk_driver_get();
        char why[PK_WHY] = "there is no driver, or no GPU";
        if (!same)
            complain(region, "the engine was built with other kernels");
        else if (!driver || !pk_program_fits(driver, &programOf(region), why))
            complain(region, why);
        else
            return new (std::nothrow) Plugin(region);
        return nullptr;
    }
    PluginFieldCollection const *getFieldNames() noexcept override {
        return &fields;
    }
    AsciiChar const *getPluginName() const noexcept override {
        return region.name;
    }
    AsciiChar const *getPluginVersion() const noexcept override {
        return kVersion;
    }
    AsciiChar const *getPluginNamespace() const noexcept override {
        return kNamespace;
    }

  private:
    pk_region const &region;
    PluginFieldCollection fields;
};

} // namespace

// What TensorRT looks for when it loads a library of plugins.
extern "C" __attribute__((visibility("default"))) void
setLoggerFinder(nvinfer1::ILoggerFinder *finder) {
    logger_finder = finder;
}

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface *const *
getCreators(int32_t &nbCreators) {
    static std::mutex lock;
    static std::vector<std::unique_ptr<Creator>> creators;
    static std::vector<nvinfer1::IPluginCreatorInterface *> list;
    std::lock_guard<std::mutex> hold(lock);
    if (list.empty())
        for (size_t i = 0; i < pk_n_regions; i++) {
            creators.push_back(std::make_unique<Creator>(pk_regions[i]));
            list.push_back(creators.back().get());
        }
    nbCreators = static_cast<int32_t>(list.size());
    return list.data();
}

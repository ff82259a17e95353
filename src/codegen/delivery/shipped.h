/* Files of src/codegen/delivery/shipped as text: made at build time (cmake/embed.cmake). */
#ifndef PO_CODEGEN_SHIPPED_H
#define PO_CODEGEN_SHIPPED_H

extern const char po_shipped_ort_slots_def[];
extern const char po_shipped_cuda_prelude_cu[];
extern const char po_shipped_petopt_cuda_h[];
extern const char po_shipped_petopt_kernel_h[];
extern const char po_shipped_petopt_ort_api_h[];
extern const char po_shipped_petopt_ort_cuda_h[];
extern const char po_shipped_petopt_ort_h[];
extern const char po_shipped_petopt_plugin_cpp[];
extern const char po_shipped_petopt_region_h[];
extern const char po_shipped_petopt_table_h[];
extern const char po_shipped_tensorrt_CMakeLists_txt[];

#endif

# Finds ONNX Runtime's C header (needed to build) and its library (opened at run time by dlopen,
# so that petopt starts without it). A system installation comes first, then .deps.
#
#   PETOPT_ORT_INCLUDE   folder of onnxruntime_c_api.h
#   PETOPT_ORT_LIBRARY   the library, or empty; its path goes into po_config.h as the place to look
#                        after the system's own library path

find_path(PETOPT_ORT_INCLUDE onnxruntime_c_api.h
    PATHS ${PETOPT_DEPS}/onnxruntime/include PATH_SUFFIXES onnxruntime
    DOC "Folder of onnxruntime_c_api.h" NO_CMAKE_FIND_ROOT_PATH)
find_library(PETOPT_ORT_LIBRARY NAMES libonnxruntime.so.1 onnxruntime
    PATHS ${PETOPT_DEPS}/onnxruntime/lib
    DOC "ONNX Runtime, opened at run time" NO_CMAKE_FIND_ROOT_PATH)
if(NOT PETOPT_ORT_LIBRARY)
    message(STATUS "ONNX Runtime's library was not found; petopt looks for it when it runs")
    set(PETOPT_ORT_LIBRARY_PATH "")
else()
    set(PETOPT_ORT_LIBRARY_PATH ${PETOPT_ORT_LIBRARY})
endif()
mark_as_advanced(PETOPT_ORT_INCLUDE PETOPT_ORT_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OnnxRuntime
    REQUIRED_VARS PETOPT_ORT_INCLUDE
    REASON_FAILURE_MESSAGE "onnxruntime_c_api.h was not found: run scripts/deps.sh")

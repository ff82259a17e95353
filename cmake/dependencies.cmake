# The libraries petopt is linked with (petopt_deps), ONNX Runtime's header and library, and the
# folder where scripts/deps.sh unpacks what is not a Debian package.
include_guard()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# Linked work trees of one repository share the .deps of the main one.
set(default_deps ${CMAKE_CURRENT_SOURCE_DIR}/.deps)
if(NOT EXISTS ${default_deps})
    execute_process(COMMAND git rev-parse --path-format=absolute --git-common-dir
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
        OUTPUT_VARIABLE common OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND common MATCHES "/\\.git$")
        cmake_path(GET common PARENT_PATH common)
        set(default_deps ${common}/.deps)
    endif()
endif()
set(PETOPT_DEPS ${default_deps} CACHE PATH "Folder that scripts/deps.sh has filled")

function(petopt_require target module package)
    pkg_check_modules(${target} IMPORTED_TARGET ${module})
    if(NOT ${target}_FOUND)
        message(FATAL_ERROR "${module} was not found: run scripts/deps.sh (Debian: ${package})")
    endif()
endfunction()

petopt_require(PROTOBUF_C libprotobuf-c libprotobuf-c-dev)
petopt_require(SQLITE sqlite3 libsqlite3-dev)
petopt_require(JANSSON jansson libjansson-dev)
petopt_require(XXHASH libxxhash libxxhash-dev)
petopt_require(Z3 z3 libz3-dev)
petopt_require(CRYPTO libcrypto libssl-dev)

add_library(petopt_deps INTERFACE)
target_link_libraries(petopt_deps INTERFACE PkgConfig::PROTOBUF_C PkgConfig::SQLITE
    PkgConfig::JANSSON PkgConfig::XXHASH PkgConfig::Z3 PkgConfig::CRYPTO Threads::Threads ${CMAKE_DL_LIBS} m)

find_package(OnnxRuntime REQUIRED)

# Opened at run time, and only where kernels for NVIDIA GPUs are asked for.
set(PETOPT_NVRTC_LIBRARY_PATH "")
if(EXISTS ${PETOPT_DEPS}/nvrtc/lib/libnvrtc.so.13)
    set(PETOPT_NVRTC_LIBRARY_PATH ${PETOPT_DEPS}/nvrtc/lib/libnvrtc.so.13)
endif()

# Compiler flags. Warnings are for our own files: generated code is a target of its own.
include_guard()

set(petopt_warnings -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes)
if(PETOPT_WERROR)
    list(APPEND petopt_warnings -Werror)
endif()

# Results must not depend on how a compiler joins multiplications and additions.
add_compile_options(-ffp-contract=off)
add_link_options(LINKER:--as-needed)

if(PETOPT_SANITIZE)
    add_compile_options(-fsanitize=${PETOPT_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${PETOPT_SANITIZE})
endif()

if(PETOPT_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "PETOPT_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
endif()

# Targets that check the sources: `format` and `format-check` (clang-format), `tidy` (clang-tidy),
# `clang-check` (clang's front end over every file, warnings as errors).
include_guard()

find_program(CLANG_FORMAT NAMES clang-format clang-format-14)
find_program(CLANG_TIDY NAMES clang-tidy clang-tidy-14)
find_program(CLANG NAMES clang clang-14)
mark_as_advanced(CLANG_FORMAT CLANG_TIDY CLANG)

set(check_script ${CMAKE_CURRENT_SOURCE_DIR}/scripts/check.sh)
set(check_env ${CMAKE_COMMAND} -E env CLANG_FORMAT=${CLANG_FORMAT} CLANG_TIDY=${CLANG_TIDY}
    CLANG=${CLANG})
foreach(check format format-check tidy clang-check)
    add_custom_target(${check}
        COMMAND ${check_env} bash ${check_script} ${check} ${CMAKE_CURRENT_BINARY_DIR}
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} USES_TERMINAL VERBATIM)
endforeach()

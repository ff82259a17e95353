# petopt_embed(OUT FILE...): the files as strings of a C source, po_shipped_NAME with dots as
# underscores. Made when configuring; a change of a file configures anew.
function(petopt_embed out)
    set(text "#include \"codegen/delivery/shipped.h\"\n")
    foreach(file ${ARGN})
        get_filename_component(name ${file} NAME)
        string(REPLACE "." "_" symbol ${name})
        file(READ ${file} bytes HEX)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
        string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n"
            bytes "${bytes}")
        string(APPEND text "const char po_shipped_${symbol}[] = {\n${bytes}0};\n")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endforeach()
    file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()

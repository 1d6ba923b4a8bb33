# embed_lines(NAME FILE OUT): writes a C file in which NAME is an array of FILE's lines, without
# comments and blank lines, that ends with NULL.
function(embed_lines name file out)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines REGEX "^[^#]")
    set(text "extern const char *const ${name}[];\nconst char *const ${name}[] = {\n")
    foreach(line ${lines})
        string(APPEND text "    \"${line}\",\n")
    endforeach()
    file(CONFIGURE OUTPUT ${out} CONTENT "${text}    0};\n" @ONLY)
endfunction()

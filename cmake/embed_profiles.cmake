# devices/*.profile as text in the library:  cmake -DROOT=... -DOUT=... -P embed_profiles.cmake
file(GLOB files ${ROOT}/devices/*.profile)
list(SORT files)
set(rows "")
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(REGEX REPLACE "([\\\\\"])" "\\\\\\1" text "${text}")
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND rows "    {\"${name}\",\n     \"${text}\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"runtime/profile.h\"\n\n"
    "extern const profile_text profile_texts[];\nconst profile_text profile_texts[] = {\n${rows}"
    "    {0, 0},\n};\n")

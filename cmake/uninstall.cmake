# Removes what the last `cmake --install` wrote down in its manifest, and the folders that carry our
# name once they are empty. Respects DESTDIR.
#   cmake -DMANIFEST=build/install_manifest.txt -P uninstall.cmake
if(NOT EXISTS "${MANIFEST}")
    message(FATAL_ERROR "Nothing was installed from this build: there is no ${MANIFEST}")
endif()
# Line by line, for paths may have whatever bytes they like: a list of CMake, file(STRINGS) and
# file(GLOB) take some for their own.
file(READ "${MANIFEST}" files)
while(NOT files STREQUAL "")
    string(FIND "${files}" "\n" end)
    string(SUBSTRING "${files}" 0 ${end} file)
    if(end EQUAL -1)
        set(files "")
    else()
        math(EXPR end "${end} + 1")
        string(SUBSTRING "${files}" ${end} -1 files)
    endif()
    set(file "$ENV{DESTDIR}${file}")
    if(EXISTS "${file}" OR IS_SYMLINK "${file}")
        message(STATUS "Removing ${file}")
        file(REMOVE "${file}")
    endif()
    get_filename_component(folder "${file}" DIRECTORY)
    while("${folder}" MATCHES "/tilewright(/|$)")
        execute_process(COMMAND rmdir -- "${folder}" ERROR_QUIET) # where nothing is left in it
        get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
endwhile()
file(REMOVE "${MANIFEST}")

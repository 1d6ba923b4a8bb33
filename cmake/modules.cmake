# How sources become modules, and modules the library. A module is one folder; its sources are
# whatever .c files lie there, so a new file needs no edit here. A folder without sources is skipped.

add_library(tw_flags INTERFACE) # for our own C, in the library and out of it
# No contraction: docs/LANGUAGE.md says where a product and a sum may fuse, and the interpreter is
# the reference for it.
target_compile_options(tw_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow
    -Wconversion -Wstrict-prototypes -Wswitch-enum -ffp-contract=off>)
if(TW_WERROR)
    target_compile_options(tw_flags INTERFACE -Werror)
endif()
target_compile_definitions(tw_flags INTERFACE _GNU_SOURCE)
target_include_directories(tw_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
link_libraries(tw_flags)

if(TW_SANITIZE)
    add_compile_options(-fsanitize=${TW_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${TW_SANITIZE})
    if(TW_FUZZER)
        add_compile_options(-fsanitize=fuzzer-no-link)
    endif()
else()
    add_compile_options(-ffunction-sections)
    add_link_options(-Wl,--gc-sections)
endif()
add_link_options(-Wl,--as-needed)

# What a module may include from outside the project.
set(TW_OUTSIDE_base dep_xxhash Threads::Threads m)
set(TW_OUTSIDE_target dep_llvm)
set(TW_OUTSIDE_target_llvm dep_llvm)
set(TW_OUTSIDE_target_cpu dep_llvm)
set(TW_OUTSIDE_target_nvptx dep_llvm)
set(TW_OUTSIDE_store dep_sqlite dep_zstd)

set(TW_MODULES "" CACHE INTERNAL "modules that have sources")

# tw_module(name folders modules-it-uses...): object library tw_NAME_obj for the library, and tw_NAME,
# an archive with those it uses, for tests that look inside.
function(tw_module name folders)
    list(TRANSFORM folders APPEND /*.c OUTPUT_VARIABLE patterns)
    list(TRANSFORM ARGN PREPEND tw_ OUTPUT_VARIABLE uses)
    list(APPEND uses ${TW_OUTSIDE_${name}})
    file(GLOB sources CONFIGURE_DEPENDS ${patterns})
    if(sources)
        add_library(tw_${name}_obj OBJECT ${sources})
        target_include_directories(tw_${name}_obj PRIVATE ${PROJECT_SOURCE_DIR})
        target_link_libraries(tw_${name}_obj PRIVATE ${TW_OUTSIDE_${name}})
        add_library(tw_${name} STATIC $<TARGET_OBJECTS:tw_${name}_obj>)
        set_target_properties(tw_${name} PROPERTIES LINKER_LANGUAGE C
            ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/modules)
        target_link_libraries(tw_${name} PUBLIC ${uses})
        set(TW_MODULES ${TW_MODULES} ${name} CACHE INTERNAL "")
        set(TW_FOLDERS_${name} ${folders} CACHE INTERNAL "")
    else()
        add_library(tw_${name} INTERFACE)
    endif()
endfunction()

# Adds runtime_code_hash (cmake/code_hash.cmake) to a module.
function(tw_code_hash name)
    set(out ${CMAKE_BINARY_DIR}/generated/code_hash.c)
    set(script ${PROJECT_SOURCE_DIR}/cmake/code_hash.cmake)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/compiler/*.c
        ${PROJECT_SOURCE_DIR}/compiler/*.h ${PROJECT_SOURCE_DIR}/compiler/*.def)
    add_custom_command(OUTPUT ${out} DEPENDS ${sources} ${script} VERBATIM
        COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${out} -P ${script})
    target_sources(tw_${name}_obj PRIVATE ${out})
endfunction()

# Adds the profiles of devices/ as texts (cmake/embed_profiles.cmake) to a module.
function(tw_embed_profiles name)
    set(out ${CMAKE_BINARY_DIR}/generated/profile_texts.c)
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed_profiles.cmake)
    file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/devices/*.profile)
    add_custom_command(OUTPUT ${out} DEPENDS ${profiles} ${script} VERBATIM
        COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${out} -P ${script})
    target_sources(tw_${name}_obj PRIVATE ${out})
endfunction()

# Adds seeds_shipped to a module: the rows of kernels/seeds.txt.
include(cmake/embed_lines.cmake)
function(tw_seeds name)
    set(out ${CMAKE_BINARY_DIR}/generated/seeds_shipped.c)
    embed_lines(seeds_shipped ${PROJECT_SOURCE_DIR}/kernels/seeds.txt ${out})
    target_sources(tw_${name}_obj PRIVATE ${out})
endfunction()

# Before 1.0 a minor version may change the interface.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(TW_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
else()
    set(TW_SOVERSION ${PROJECT_VERSION_MAJOR})
endif()

# libtilewright. The archive is one partial link with its hidden symbols made local: whoever links
# it sees the public names only, as with the shared library.
function(tw_library)
    list(TRANSFORM TW_MODULES REPLACE "(.+)" "$<TARGET_OBJECTS:tw_\\1_obj>" OUTPUT_VARIABLE objects)
    set(outside "")
    foreach(name ${TW_MODULES})
        list(APPEND outside ${TW_OUTSIDE_${name}})
    endforeach()
    list(REMOVE_DUPLICATES outside)
    set(TW_OUTSIDE ${outside} PARENT_SCOPE)

    set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    add_library(tw_shared SHARED ${objects})
    target_link_libraries(tw_shared PRIVATE ${outside})
    target_link_options(tw_shared PRIVATE -Wl,--version-script=${exports})
    if(NOT TW_SANITIZE)
        target_link_options(tw_shared PRIVATE -Wl,-z,defs)
    endif()
    if(TW_PORTABLE)
        target_link_options(tw_shared PRIVATE -s) # most of it is LLVM's symbol table
    endif()
    set_target_properties(tw_shared PROPERTIES VERSION ${PROJECT_VERSION}
        SOVERSION ${TW_SOVERSION} LINK_DEPENDS ${exports})

    set(whole ${CMAKE_BINARY_DIR}/lib/tilewright_whole.o)
    add_custom_command(OUTPUT ${whole} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
        COMMAND ${CMAKE_LINKER} -r -o ${whole} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole})
    add_library(tw_static STATIC ${whole})
    set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_link_libraries(tw_static INTERFACE ${outside})

    set_target_properties(tw_shared tw_static PROPERTIES OUTPUT_NAME tilewright LINKER_LANGUAGE C)
    foreach(library tw_shared tw_static)
        target_include_directories(${library} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    endforeach()
    install(TARGETS tw_shared tw_static)
    install(FILES include/tilewright.h include/tilewright_ir.h include/dlpack.h TYPE INCLUDE)
endfunction()

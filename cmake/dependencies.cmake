# What must be installed. Each failure names the Debian package. Gives the interface targets
# dep_llvm, dep_sqlite, dep_xxhash, dep_zstd, dep_check.

function(tw_missing what package)
    message(FATAL_ERROR "${what} was not found. On Debian: apt-get install ${package}\n"
        "(scripts/setup.sh installs everything that the build needs)")
endfunction()

include(CheckLanguage)
check_language(CXX) # its runtime goes into a static LLVM, and a test compiles our header as C++11
if(NOT CMAKE_CXX_COMPILER)
    tw_missing("A C++ compiler" g++)
endif()
enable_language(CXX)

find_program(PKG_CONFIG_EXECUTABLE NAMES pkg-config pkgconf)
if(NOT PKG_CONFIG_EXECUTABLE)
    tw_missing("pkg-config" pkg-config)
endif()
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Portable builds name the archive, because -static would also take libc.
function(tw_pkg name module package)
    pkg_check_modules(${name} QUIET ${module})
    if(NOT ${name}_FOUND)
        tw_missing("${module}" ${package})
    endif()
    add_library(dep_${name} INTERFACE)
    target_include_directories(dep_${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
    set(libraries ${${name}_LINK_LIBRARIES})
    if(TW_PORTABLE)
        string(REGEX REPLACE "\\.so$" ".a" libraries "${libraries}")
    endif()
    target_link_libraries(dep_${name} INTERFACE ${libraries} ${ARGN})
endfunction()

tw_pkg(sqlite sqlite3 libsqlite3-dev m ${CMAKE_DL_LIBS} Threads::Threads)
tw_pkg(zstd libzstd libzstd-dev)
tw_pkg(check check check)

# xxHash is compiled into compiler/base/hash.c; only its header is needed.
pkg_check_modules(xxhash QUIET libxxhash)
if(NOT xxhash_FOUND)
    tw_missing("xxHash" libxxhash-dev)
endif()
add_library(dep_xxhash INTERFACE)
target_include_directories(dep_xxhash SYSTEM INTERFACE ${xxhash_INCLUDE_DIRS})

# 22 is what tests run with; 19, which Debian has too, is compiled against in CI.
set(TW_LLVM 22 CACHE STRING "Major version of LLVM: 22 or 19")
if(NOT TW_LLVM MATCHES "^(19|22)$")
    message(FATAL_ERROR "TW_LLVM is ${TW_LLVM}: Tilewright builds with LLVM 22 and with LLVM 19")
endif()

# ---- LLVM ----------------------------------------------------------------------------------------

set(TW_LLVM_MAJOR ${TW_LLVM})
if(LLVM_CONFIG MATCHES "llvm(-config)?-([0-9]+)" AND NOT CMAKE_MATCH_2 EQUAL TW_LLVM_MAJOR) # of before
    unset(LLVM_CONFIG CACHE)
endif()
find_program(LLVM_CONFIG NAMES llvm-config-${TW_LLVM_MAJOR}
    HINTS /usr/lib/llvm-${TW_LLVM_MAJOR}/bin DOC "llvm-config of LLVM ${TW_LLVM_MAJOR}")
if(NOT LLVM_CONFIG)
    tw_missing("LLVM ${TW_LLVM_MAJOR}" llvm-${TW_LLVM_MAJOR}-dev)
endif()

function(tw_llvm_config out)
    execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE failed
        ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
        tw_missing("LLVM ${TW_LLVM_MAJOR} for development" llvm-${TW_LLVM_MAJOR}-dev)
    endif()
    separate_arguments(text UNIX_COMMAND "${text}")
    set(${out} ${text} PARENT_SCOPE)
endfunction()

function(tw_archive name package)
    find_library(LIB_${name}_ARCHIVE lib${name}.a)
    if(NOT LIB_${name}_ARCHIVE)
        tw_missing("A static lib${name}" ${package})
    endif()
endfunction()

tw_llvm_config(LLVM_VERSION --version)
tw_llvm_config(llvm_include --includedir)
tw_llvm_config(llvm_libdir --libdir)
if(NOT LLVM_VERSION MATCHES "^${TW_LLVM_MAJOR}\\." OR NOT EXISTS ${llvm_include}/llvm-c/Core.h)
    tw_missing("LLVM ${TW_LLVM_MAJOR} for development" llvm-${TW_LLVM_MAJOR}-dev)
endif()

add_library(dep_llvm INTERFACE)
target_include_directories(dep_llvm SYSTEM INTERFACE ${llvm_include})
target_link_directories(dep_llvm INTERFACE ${llvm_libdir})
if(TW_PORTABLE)
    # Of LLVM's own dependencies only these two are reached: Z3 and libxml2 serve parts not linked.
    tw_llvm_config(llvm_libraries --link-static --libs native nvptx orcjit passes)
    tw_archive(z zlib1g-dev)
    tw_archive(zstd libzstd-dev)
    # LLVM is C++: its runtime goes in by name, so that everything is still linked as C.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a
        OUTPUT_VARIABLE libstdcxx OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT EXISTS ${libstdcxx})
        tw_missing("A static libstdc++" g++)
    endif()
    target_link_libraries(dep_llvm INTERFACE ${llvm_libraries} ${LIB_z_ARCHIVE} ${LIB_zstd_ARCHIVE}
        ${libstdcxx} -static-libgcc m rt ${CMAKE_DL_LIBS} Threads::Threads)
else()
    tw_llvm_config(llvm_libraries --link-shared --libs)
    target_link_libraries(dep_llvm INTERFACE ${llvm_libraries} stdc++) # its new_handler is set
endif()
message(STATUS "LLVM ${LLVM_VERSION}, ${CMAKE_BUILD_TYPE} build in ${CMAKE_BINARY_DIR}")

# What `cmake --install` puts where, and the target that takes it away again. Included last.
#   include/          the headers and DLPack's
#   lib/              the shared library and the archive; pkgconfig/ and cmake/tilewright/ for builds
#   bin/              the command
#   share/            its man page and completions; tilewright/kernels/: the kernels as text;
#                     tilewright/seeds.txt: configurations for what nobody tuned;
#                     tilewright/devices/: profiles of GPUs;
#                     doc/tilewright/: licences, README.md and, as it has them, docs/ and examples/
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What a program that links the archive has to link too, as linker arguments.
function(tw_private_libraries out)
    set(flags "")
    foreach(dependency ${ARGN})
        if(dependency STREQUAL "Threads::Threads")
            list(APPEND flags -pthread)
        elseif(TARGET ${dependency})
            get_target_property(folders ${dependency} INTERFACE_LINK_DIRECTORIES)
            if(folders)
                list(TRANSFORM folders PREPEND -L)
                list(APPEND flags ${folders})
            endif()
            get_target_property(inside ${dependency} INTERFACE_LINK_LIBRARIES)
            if(inside)
                tw_private_libraries(inside ${inside})
                list(APPEND flags ${inside})
            endif()
        elseif(dependency MATCHES "^[-/]")
            list(APPEND flags ${dependency})
        else()
            list(APPEND flags -l${dependency})
        endif()
    endforeach()
    set(${out} ${flags} PARENT_SCOPE)
endfunction()

tw_private_libraries(TW_PRIVATE_LIBRARIES ${TW_OUTSIDE})
list(JOIN TW_PRIVATE_LIBRARIES " " TW_PRIVATE_FLAGS)

# ---- for builds of others ------------------------------------------------------------------------
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
set(generated ${CMAKE_BINARY_DIR}/generated)
file(RELATIVE_PATH TW_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TW_UP "${TW_UP}")
configure_file(cmake/tilewright.pc.in ${generated}/tilewright.pc @ONLY)
configure_package_config_file(cmake/tilewrightConfig.cmake.in ${generated}/tilewrightConfig.cmake
    INSTALL_DESTINATION ${package_folder}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${generated}/tilewrightConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/tilewright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${generated}/tilewrightConfig.cmake ${generated}/tilewrightConfigVersion.cmake
    DESTINATION ${package_folder})

install(FILES LICENSE THIRD_PARTY_NOTICES.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
file(GLOB examples CONFIGURE_DEPENDS examples/*.c examples/*.cc examples/CMakeLists.txt)
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# ---- the kernels ---------------------------------------------------------------------------------
install(DIRECTORY kernels/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tilewright/kernels
    FILES_MATCHING PATTERN "*.tw")
install(FILES kernels/seeds.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/tilewright)
install(DIRECTORY devices/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tilewright/devices
    FILES_MATCHING PATTERN "*.profile") # to start from: the library has them built in

# ---- what the command says of itself -------------------------------------------------------------
function(tw_page topic folder name)
    set(page ${CMAKE_BINARY_DIR}/pages/${name})
    add_custom_command(OUTPUT ${page} DEPENDS tilewright VERBATIM
        COMMAND sh -c "\"$0\" help \"$1\" >\"$2\"" $<TARGET_FILE:tilewright> ${topic} ${page})
    set(pages ${pages} ${page} PARENT_SCOPE)
    install(FILES ${page} DESTINATION ${folder})
endfunction()

if(NOT CMAKE_CROSSCOMPILING)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pages)
    tw_page(man ${CMAKE_INSTALL_MANDIR}/man1 tilewright.1)
    tw_page(bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions tilewright)
    tw_page(zsh ${CMAKE_INSTALL_DATADIR}/zsh/site-functions _tilewright)
    tw_page(fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d tilewright.fish)
    add_custom_target(pages ALL DEPENDS ${pages})
endif()

# ---- taking it away ------------------------------------------------------------------------------
add_custom_target(uninstall VERBATIM COMMAND ${CMAKE_COMMAND}
    -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)

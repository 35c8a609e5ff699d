# cmake --install: the archive, the public headers, and a package for find_package(gradwire).

include(CMakePackageConfigHelpers)

set(gradwire_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradwire)

install(TARGETS gradwire EXPORT gradwireTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gradwire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development FILES_MATCHING PATTERN "*.h")
install(EXPORT gradwireTargets NAMESPACE gradwire:: DESTINATION ${gradwire_package_dir}
        COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gradwireConfig.cmake.in
  ${PROJECT_BINARY_DIR}/gradwireConfig.cmake INSTALL_DESTINATION ${gradwire_package_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradwireConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gradwireConfig.cmake
        ${PROJECT_BINARY_DIR}/gradwireConfigVersion.cmake
        DESTINATION ${gradwire_package_dir} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT development)

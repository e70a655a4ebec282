# Packages for a system: cpack -G DEB (or TGZ), and an Lmod modulefile.
set(kedge_module_libraries)
if(BUILD_SHARED_LIBS)
  set(kedge_module_libraries "prepend_path(\"LD_LIBRARY_PATH\", pathJoin(prefix, \"${CMAKE_INSTALL_LIBDIR}\"))")
endif()
configure_file(kedge/packaging/kedge.lua.in ${CMAKE_CURRENT_BINARY_DIR}/kedge.lua @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kedge.lua RENAME ${PROJECT_VERSION}.lua
  DESTINATION ${CMAKE_INSTALL_DATADIR}/kedge/modulefiles/kedge)

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME kedge)
  set(CPACK_PACKAGE_VENDOR Kedge)
  set(CPACK_PACKAGE_CONTACT "the Kedge developers")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  # What its programs need is read from them. Linking the static libraries also needs their dependencies.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/src ${CMAKE_BINARY_DIR}/src/testing)
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "g++, cmake, libfmt-dev, libspdlog-dev, libtomlplusplus-dev, libboost-filesystem-dev, libisal-dev, liburing-dev, hdf5-tools, python3-h5py")
  set(CPACK_STRIP_FILES ON)
  include(CPack)
endif()

# The places of an installation. GNUInstallDirs takes absolute ones, too: those below the prefix are made relative, so
# that the installation may be moved; one elsewhere stays what it is.
include(GNUInstallDirs)
foreach(name IN ITEMS BINDIR LIBDIR INCLUDEDIR DATADIR MANDIR LIBEXECDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${name}}")
    cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${CMAKE_INSTALL_${name}}" NORMALIZE below)
    if(below)
      file(RELATIVE_PATH CMAKE_INSTALL_${name} "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_${name}}")
    endif()
  endif()
endforeach()
unset(below)

# The pages' own directory, also where Kedge is part of a project whose pages have these names.
set(KEDGE_INSTALL_DOCDIR "${CMAKE_INSTALL_DOCDIR}")
if(NOT PROJECT_IS_TOP_LEVEL)
  set(KEDGE_INSTALL_DOCDIR "${CMAKE_INSTALL_DATAROOTDIR}/doc/kedge")
endif()

# kedge_rpath_from(RESULT DIRECTORY): where programs that are installed in DIRECTORY find the libraries.
function(kedge_rpath_from result directory)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${directory}")
    cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE OUTPUT_VARIABLE rpath)
  else()
    file(RELATIVE_PATH rpath "/${directory}" "/${CMAKE_INSTALL_LIBDIR}")
    set(rpath "$ORIGIN/${rpath}")
  endif()
  set(${result} "${rpath}" PARENT_SCOPE)
endfunction()

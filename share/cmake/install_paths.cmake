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

# kedge_way(RESULT FROM TO): where what is installed in the directory FROM finds the directory TO: below $ORIGIN, so that
# it survives a move of the installation, unless one of the two is an absolute place.
function(kedge_way result from to)
  if(IS_ABSOLUTE "${from}" OR IS_ABSOLUTE "${to}")
    cmake_path(ABSOLUTE_PATH to BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE OUTPUT_VARIABLE way)
  else()
    file(RELATIVE_PATH way "/${from}" "/${to}")
    set(way "$ORIGIN/${way}")
  endif()
  set(${result} "${way}" PARENT_SCOPE)
endfunction()

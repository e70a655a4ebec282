# Makes the modules that save and load: one for each type of elements, from regions.f90.in, with a pair of procedures
# from region.f90.in for each rank from 0 to 7. KEDGE_MAX_DIMENSIONS is 8: one more is left for the length of strings.

# What differs between numbers, which C gets as they lie in memory, strings, which it gets letter by letter, and
# logicals, which become bytes of 0 and 1, whatever the compiler takes for true.
macro(kedge_fortran_numbers)
  set(INNER 0)
  if(RANK EQUAL 0)
    set(SAVED "[data]")
    set(EXTENTS "[integer(int64) ::]")
    set(LOAD "    ${TYPE} :: one(1)

    one = data
    call load_elements(engine, name, one, [integer(int64) ::], code)
    if (code == KEDGE_OK) data = one(1)")
  else()
    set(SAVED "data")
    set(EXTENTS "shape(data, int64)")
    set(LOAD "
    call load_elements(engine, name, data, shape(data, int64), code)")
  endif()
endmacro()

macro(kedge_fortran_strings)
  set(INNER 1)
  set(SAVED "data")
  if(RANK EQUAL 0)
    set(EXTENTS "[len(data, int64)]")
  else()
    set(EXTENTS "[len(data, int64), shape(data, int64)]")
  endif()
  set(LOAD "
    call load_elements(engine, name, data, ${EXTENTS}, code)")
endmacro()

macro(kedge_fortran_logicals)
  kedge_fortran_numbers()
  if(RANK EQUAL 0)
    set(SAVED "[merge(1_int8, 0_int8, data)]")
    set(LOAD "    integer(int8) :: one(1)

    call load_elements(engine, name, one, [integer(int64) ::], code)
    if (code == KEDGE_OK) data = one(1) /= 0")
  else()
    set(SAVED "merge(1_int8, 0_int8, data)")
    list(JOIN sizes ", &\n      " all_sizes)
    set(LOAD "    integer(int8), allocatable :: bytes${BOUNDS}

    allocate (bytes( &
      ${all_sizes}))
    call load_elements(engine, name, bytes, shape(data, int64), code)
    if (code == KEDGE_OK) data = bytes /= 0")
  endif()
endmacro()

# kedge_fortran_regions(numbers|strings|logicals LABEL TYPE STORED DTYPE): makes modules' file LABEL.f90 and appends it
# to kedge_fortran_made. STORED is the type of what C is given.
function(kedge_fortran_regions manner LABEL TYPE STORED DTYPE)
  set(PROCEDURES)
  set(BOUNDS)
  set(sizes)
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/region.f90.in region)
  foreach(RANK RANGE 0 7)
    if(RANK GREATER 0)
      string(REPEAT ", :" ${RANK} BOUNDS)
      string(REGEX REPLACE "^, (.*)" "(\\1)" BOUNDS "${BOUNDS}")
      list(APPEND sizes "size(data, ${RANK}, int64)")
    endif()
    cmake_language(CALL kedge_fortran_${manner})
    string(CONFIGURE "${region}" procedures @ONLY)
    string(APPEND PROCEDURES "${procedures}")
  endforeach()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/generated/${LABEL}.f90)
  configure_file(regions.f90.in ${file} @ONLY)
  set(kedge_fortran_made ${kedge_fortran_made} ${file} PARENT_SCOPE)
endfunction()

set(kedge_fortran_made)
foreach(bits 8 16 32 64)
  kedge_fortran_regions(numbers int${bits} "integer(int${bits})" "integer(int${bits})" KEDGE_INT${bits})
  kedge_fortran_regions(logicals logical${bits} "logical(int${bits})" "integer(int8)" KEDGE_BOOL)
endforeach()
foreach(bits 32 64)
  math(EXPR both "2 * ${bits}")
  kedge_fortran_regions(numbers real${bits} "real(real${bits})" "real(real${bits})" KEDGE_FLOAT${bits})
  kedge_fortran_regions(numbers complex${bits} "complex(real${bits})" "complex(real${bits})" KEDGE_COMPLEX${both})
endforeach()
kedge_fortran_regions(strings text "character(len=*)" "character(kind=c_char)" KEDGE_UINT8)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/region.f90.in)

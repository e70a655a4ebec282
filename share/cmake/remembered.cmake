# CMake keeps in a build directory what it has found: a choice that is given later is ignored without a word. So Kedge
# remembers the choices that it has searched with, and stops if one has changed.

# kedge_chosen(RESULT VARIABLE): what is given now, in the variable or, as CMake's search has it, in the environment.
function(kedge_chosen result variable)
  set(value "${${variable}}")
  if(NOT value AND variable MATCHES "_(HOME|ROOT)$")
    set(value "$ENV{${variable}}")
  endif()
  if(NOT value)
    set(value "")
  elseif(variable MATCHES "_PREFER_")
    set(value ON)  # however it was written
  endif()
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

# kedge_refuse_another(VARIABLES...): before the search.
function(kedge_refuse_another)
  foreach(variable IN LISTS ARGN)
    kedge_chosen(now ${variable})
    set(before "${KEDGE_CHOSEN_${variable}}")
    if(now STREQUAL "" OR now STREQUAL before OR NOT DEFINED KEDGE_CHOSEN_${variable})
      continue()
    endif()
    # A compiler may be given by its name alone, and a path may lead to the same place.
    get_filename_component(name "${before}" NAME)
    get_filename_component(now_real "${now}" REALPATH)
    get_filename_component(before_real "${before}" REALPATH)
    if(now STREQUAL name OR (before AND now_real STREQUAL before_real))
      continue()
    endif()
    set(words "with ${variable}=${before}")
    if(before STREQUAL "")
      set(words "without ${variable}")
    endif()
    message(FATAL_ERROR "This build directory was configured ${words}, and CMake keeps what it found then: "
      "use an empty build directory for ${variable}=${now}.")
  endforeach()
endfunction()

# kedge_remember(VARIABLES...): after the search, which may have made a path of a name.
function(kedge_remember)
  foreach(variable IN LISTS ARGN)
    if(NOT DEFINED KEDGE_CHOSEN_${variable})
      kedge_chosen(value ${variable})
      set(KEDGE_CHOSEN_${variable} "${value}" CACHE INTERNAL "${variable}, when Kedge searched with it")
    endif()
  endforeach()
endfunction()

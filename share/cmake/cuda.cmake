# CUDA is used through its driver, which a program that uses GPUs has loaded: of the toolkit headers are needed, and
# nvcc for the kernels.
if(NOT KEDGE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "KEDGE_CUDA is AUTO, ON or OFF, not ${KEDGE_CUDA}")
endif()
set(KEDGE_HAS_CUDA FALSE)
if(NOT KEDGE_CUDA STREQUAL OFF)
  find_package(CUDAToolkit 11.3 QUIET)
  if(CUDAToolkit_FOUND)
    set(KEDGE_HAS_CUDA TRUE)
  elseif(KEDGE_CUDA STREQUAL ON)
    kedge_report_missing("CUDA toolkit 11.3" nvidia-cuda-toolkit cuda "(KEDGE_CUDA is ON; its nvcc is looked for in PATH "
      "and in CUDAToolkit_ROOT)")
  endif()
endif()

# IMAGE, a source of TARGET, gets KERNELS for the architectures 8.0 and 9.0 and for later ones. Without an nvcc that supports
# them, or that works with the host compiler, there are no kernels, and the host does the work.
function(kedge_embed_kernels target image kernels)
  if(NOT CUDAToolkit_NVCC_EXECUTABLE OR CUDAToolkit_VERSION VERSION_LESS 11.8)
    return()
  endif()
  set(host_compiler ${CMAKE_CUDA_HOST_COMPILER})
  if(NOT host_compiler)
    set(host_compiler $ENV{CUDAHOSTCXX})
  endif()
  set(fatbin "${CMAKE_CURRENT_BINARY_DIR}/kernels.fatbin")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${kernels}")
  cmake_path(GET source PARENT_PATH directory)
  file(GLOB headers CONFIGURE_DEPENDS "${directory}/*.hpp")
  set(script "${PROJECT_SOURCE_DIR}/share/cmake/compile_kernels.cmake")
  add_custom_command(OUTPUT "${fatbin}"
    COMMAND "${CMAKE_COMMAND}" "-DNVCC=${CUDAToolkit_NVCC_EXECUTABLE}" "-DHOST_COMPILER=${host_compiler}"
      "-DINCLUDE=${PROJECT_SOURCE_DIR}/src" "-DSOURCE=${source}" "-DFATBIN=${fatbin}" -P "${script}"
    DEPENDS "${source}" ${headers} "${script}" COMMENT "Compiling kernels for GPUs" VERBATIM)
  target_sources(${target} PRIVATE "${fatbin}")
  set_source_files_properties(${image} PROPERTIES OBJECT_DEPENDS "${fatbin}"
    COMPILE_DEFINITIONS "KEDGE_KERNEL_IMAGE=\"${fatbin}\"")
endfunction()

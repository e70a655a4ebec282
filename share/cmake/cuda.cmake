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
# them there are no kernels, and the host does the work.
function(kedge_embed_kernels target image kernels)
  if(NOT CUDAToolkit_NVCC_EXECUTABLE OR CUDAToolkit_VERSION VERSION_LESS 11.8)
    return()
  endif()
  set(host_compiler ${CMAKE_CUDA_HOST_COMPILER})
  if(NOT host_compiler)
    set(host_compiler $ENV{CUDAHOSTCXX})
  endif()
  set(flags --fatbin -O3 -std=c++17 -allow-unsupported-compiler -gencode arch=compute_80,code=sm_80
    -gencode "arch=compute_90,code=[sm_90,compute_90]" -Xfatbin -compress-all -I "${PROJECT_SOURCE_DIR}/src")
  if(host_compiler)
    list(APPEND flags -ccbin "${host_compiler}")
  endif()
  set(fatbin "${CMAKE_CURRENT_BINARY_DIR}/kernels.fatbin")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${kernels}")
  # Of some pairs of an nvcc and a host compiler nothing works.
  set(tried "${CUDAToolkit_NVCC_EXECUTABLE} ${CUDAToolkit_VERSION} ${host_compiler}")
  if(NOT KEDGE_NVCC_TRIED STREQUAL tried)
    execute_process(COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" ${flags} -o "${fatbin}" "${source}"
      RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    set(KEDGE_NVCC_TRIED "${tried}" CACHE INTERNAL "nvcc and host compiler that were tried")
    set(KEDGE_NVCC_WORKS "${result}" CACHE INTERNAL "0: they compile kernels")
    if(NOT result EQUAL 0)
      message(WARNING "no GPU kernels: ${CUDAToolkit_NVCC_EXECUTABLE} cannot compile them with this host compiler; name "
        "another one in CUDAHOSTCXX and configure again, or set KEDGE_CUDA to OFF:\n${said}")
    endif()
  endif()
  if(NOT KEDGE_NVCC_WORKS EQUAL 0)
    return()
  endif()
  cmake_path(GET source PARENT_PATH directory)
  file(GLOB headers CONFIGURE_DEPENDS "${directory}/*.hpp")
  add_custom_command(OUTPUT "${fatbin}"
    COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" ${flags} -o "${fatbin}" "${source}"
    DEPENDS "${source}" ${headers} COMMENT "Compiling kernels for GPUs" VERBATIM)
  target_sources(${target} PRIVATE "${fatbin}")
  set_source_files_properties(${image} PROPERTIES OBJECT_DEPENDS "${fatbin}"
    COMPILE_DEFINITIONS "KEDGE_KERNEL_IMAGE=\"${fatbin}\"")
endfunction()

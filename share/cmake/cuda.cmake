# CUDA is used through its driver, which a program that uses GPUs has loaded: of the toolkit only headers are needed.
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

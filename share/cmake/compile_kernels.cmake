# Compiles SOURCE to FATBIN, which is empty where that fails: of some pairs of an nvcc and a host compiler nothing works,
# and Kedge does without.
set(host)
if(HOST_COMPILER)
  set(host -ccbin "${HOST_COMPILER}")
endif()
execute_process(COMMAND "${NVCC}" --fatbin -O3 -std=c++17 -allow-unsupported-compiler -gencode arch=compute_80,code=sm_80
    -gencode "arch=compute_90,code=[sm_90,compute_90]" -Xfatbin -compress-all ${host} -I "${INCLUDE}" -o "${FATBIN}" "${SOURCE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(WARNING "no GPU kernels: ${NVCC} could not compile them, so the host computes checksums of GPU memory. Where the "
    "host compiler is the cause, name another one in CUDAHOSTCXX and build again in a new directory:\n${said}")
  file(WRITE "${FATBIN}" "")
endif()

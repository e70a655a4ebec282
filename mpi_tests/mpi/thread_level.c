// For LD_PRELOAD: MPI_Init_thread asks for the level that KEDGE_TEST_THREADS names, whatever the program asks for.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const char* level = getenv("KEDGE_TEST_THREADS");
  if (level != NULL && strcmp(level, "single") == 0) required = MPI_THREAD_SINGLE;
  if (level != NULL && strcmp(level, "funneled") == 0) required = MPI_THREAD_FUNNELED;
  if (level != NULL && strcmp(level, "serialized") == 0) required = MPI_THREAD_SERIALIZED;
  return PMPI_Init_thread(argc, argv, required, provided);
}

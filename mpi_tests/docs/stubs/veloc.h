/* Calls of VeloC 1.8 that the guide "from VeloC" uses. */
#ifndef STUB_VELOC_H
#define STUB_VELOC_H

#include <mpi.h>
#include <stddef.h>

#define VELOC_SUCCESS 0

int VELOC_Init(MPI_Comm comm, const char* cfg_file);
int VELOC_Finalize(int cleanup);
int VELOC_Mem_protect(int id, void* ptr, size_t count, size_t base_size);
int VELOC_Restart_test(const char* name, int version);
int VELOC_Restart(const char* name, int version);
int VELOC_Checkpoint(const char* name, int version);

#endif

/* Calls of FTI 1.6 that the guide "from FTI" uses. */
#ifndef STUB_FTI_H
#define STUB_FTI_H

#include <mpi.h>
#include <stdint.h>

typedef int fti_id_t;
#define FTI_SCES 0
extern MPI_Comm FTI_COMM_WORLD;
extern fti_id_t FTI_INTG;
extern fti_id_t FTI_DBLE;

int FTI_Init(const char* configFile, MPI_Comm globalComm);
int FTI_Status();
int FTI_Protect(int id, void* ptr, int64_t count, fti_id_t tid);
int FTI_Checkpoint(int id, int level);
int FTI_Recover();
int FTI_Finalize();

#endif

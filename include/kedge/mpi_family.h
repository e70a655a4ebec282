/* Which MPI a program is compiled with. Types such as MPI_Comm differ between MPI libraries, so a program and a Kedge
 * of different ones must not come together: names of Kedge that take a communicator carry that of the MPI, and a
 * mixture does not link ("undefined reference to kedge::built_with_mpich::mpi"). Build both with the same MPI. */
#ifndef KEDGE_MPI_FAMILY_H
#define KEDGE_MPI_FAMILY_H

#include <mpi.h>

#if defined(OPEN_MPI)
#define KEDGE_MPI_FAMILY built_with_open_mpi
#elif defined(MPICH_VERSION) || defined(MPICH_NAME) /* and what shares its ABI: Intel MPI, MVAPICH, Cray MPICH */
#define KEDGE_MPI_FAMILY built_with_mpich
#else
#define KEDGE_MPI_FAMILY built_with_another_mpi
#endif

/* C has no namespaces: the name of the MPI is the end of the function's. */
#define KEDGE_MPI_JOIN(name, family) name##_##family
#define KEDGE_MPI_NAME_OF(name, family) KEDGE_MPI_JOIN(name, family)
#define KEDGE_MPI_NAME(name) KEDGE_MPI_NAME_OF(name, KEDGE_MPI_FAMILY)

#endif

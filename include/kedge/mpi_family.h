/* Which MPI a program is compiled with. Types such as MPI_Comm differ between MPI libraries, so Kedge's functions that
 * take a communicator carry the MPI's name: a program built with another MPI does not link ("undefined reference to
 * kedge::built_with_mpich::mpi"). Build both with the same MPI. */
#ifndef KEDGE_MPI_FAMILY_H
#define KEDGE_MPI_FAMILY_H

#include <mpi.h>

#if defined(OPEN_MPI)
#define KEDGE_MPI_FAMILY built_with_open_mpi
#define KEDGE_MPI_FAMILY_TEXT "Open MPI"
#elif defined(MPICH_VERSION) || defined(MPICH_NAME) /* and what shares its ABI: Intel MPI, MVAPICH, Cray MPICH */
#define KEDGE_MPI_FAMILY built_with_mpich
#define KEDGE_MPI_FAMILY_TEXT "MPICH"
#else
#define KEDGE_MPI_FAMILY built_with_another_mpi
#define KEDGE_MPI_FAMILY_TEXT "another MPI"
#endif

/* C has no namespaces: the name of the MPI is the end of the function's. */
#define KEDGE_MPI_JOIN(name, family) name##_##family
#define KEDGE_MPI_NAME_OF(name, family) KEDGE_MPI_JOIN(name, family)
#define KEDGE_MPI_NAME(name) KEDGE_MPI_NAME_OF(name, KEDGE_MPI_FAMILY)

#endif

/* A program of the launch that knows nothing of Kedge. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Comm own;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 1, rank, &own);
  MPI_Comm_free(&own);
  printf("beside came to its end\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}

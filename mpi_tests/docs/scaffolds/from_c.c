/* The guide's calls from C, in a program; that none of them failed is asked at the end. */
#include <kedge/kedge_mpi.h>
#include <stdio.h>

static int calls(void) {
  kedge_engine* engine = NULL;
  int found = 0;
  int32_t step = 100;
  // [example]
  return step == 100 && kedge_last_failure()->code == KEDGE_OK;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int good = calls() && calls(); /* the second start loads what the first one committed */
  if (!good) printf("%s\n", kedge_last_error());
  MPI_Finalize();
  return !good;
}

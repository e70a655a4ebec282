#include <kedge/kedge_mpi.h>
#include <stdio.h>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  kedge_engine* engine = NULL;
  int found = 0, step = 0;
  kedge_error error = kedge_engine_new(MPI_COMM_WORLD, NULL, &engine);
  if (error == KEDGE_OK) error = kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found);
  if (error == KEDGE_OK && found) {
    kedge_load(engine, "step", &step, KEDGE_INT32, 0, NULL);
    error = kedge_close(engine);
  }
  ++step;
  if (error == KEDGE_OK) error = kedge_create(engine, "step", NULL, 0);
  if (error == KEDGE_OK) {
    kedge_save(engine, "step", &step, KEDGE_INT32, 0, NULL);
    error = kedge_commit(engine);
  }
  if (error == KEDGE_OK) error = kedge_finalize(engine);
  printf("is %d: %s\n", step, error == KEDGE_OK ? "well" : kedge_last_error());
  kedge_engine_free(engine);
  MPI_Finalize();
  return error != KEDGE_OK;
}

/* Ranks of a job whose others are C++ and Fortran: see languages_test.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "kedge/kedge.h"
#include "kedge/kedge_mpi.h"

static void require(kedge_error code) {
  if (code == KEDGE_OK) return;
  fprintf(stderr, "%s\n", kedge_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* As kedge.h says at kedge_close. */
static int restore(kedge_engine* engine, int32_t* step, double** field, uint64_t* size) {
  kedge_error code = KEDGE_OK;
  int found = 0;
  do {
    require(kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found));
    if (!found) return 0;
    kedge_region saved;
    if (kedge_find_region(engine, "field", &saved) == KEDGE_OK) {
      *size = saved.shape[0];
      *field = realloc(*field, *size * sizeof **field);
    }
    (void)kedge_load(engine, "step", step, KEDGE_INT32, 0, NULL);
    (void)kedge_load(engine, "field", *field, KEDGE_FLOAT64, 1, size);
    code = kedge_close(engine);
  } while (code == KEDGE_CORRUPT);
  require(code);
  return 1;
}

int main(int argc, char** argv) {
  int rank = 0;
  int32_t step = 0;
  uint64_t size = 1;
  double* field = malloc(sizeof *field);
  kedge_engine* engine = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  require(kedge_engine_new(MPI_COMM_WORLD, NULL, &engine));
  int good = restore(engine, &step, &field, &size) && size == 1000 * ((uint64_t)rank + 1);
  for (uint64_t i = 0; i < size; ++i) good = good && field[i] == step + rank;
  printf("rank %d: step %d%s\n", rank, (int)step, good ? ", good" : ", none");
  fflush(stdout);
  size = 1000 * ((uint64_t)rank + 1);
  field = realloc(field, size * sizeof *field);
  for (int turn = 0; turn < 2; ++turn) {
    char tag[32];
    ++step;
    for (uint64_t i = 0; i < size; ++i) field[i] = step + rank;
    snprintf(tag, sizeof tag, "step-%d", (int)step);
    require(kedge_create(engine, tag, NULL, 0));
    (void)kedge_save(engine, "step", &step, KEDGE_INT32, 0, NULL);
    (void)kedge_save(engine, "field", field, KEDGE_FLOAT64, 1, &size);
    require(kedge_commit(engine));
  }
  require(kedge_finalize(engine));
  kedge_engine_free(engine);
  free(field);
  MPI_Finalize();
  return 0;
}

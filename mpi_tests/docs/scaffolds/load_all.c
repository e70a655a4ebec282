/* Two ranks save rows of an array, and load them with one row more on each side. */
#include <kedge/kedge_mpi.h>
#include <stdio.h>

static int calls(kedge_engine* engine, int rank) {
  const uint64_t all_rows = 8, columns = 3, rows = 5, first_row = rank == 0 ? 0 : 3;
  const uint64_t own_shape[] = {4, 3}, own_whole[] = {8, 3}, own_offset[] = {(uint64_t)rank * 4, 0};
  double own[12], block[15];
  int32_t step = 7, entry = 100 + rank;
  for (int i = 0; i < 12; ++i) own[i] = rank * 12 + i;
  if (kedge_create(engine, "a", NULL, 0) != KEDGE_OK) return 0;
  kedge_save_shard(engine, "field", own, KEDGE_FLOAT64, 2, own_shape, own_whole, own_offset, 0);
  kedge_save_replicated(engine, "step", &step, KEDGE_INT32, 0, NULL);
  kedge_save(engine, "log", &entry, KEDGE_INT32, 0, NULL);
  if (kedge_commit(engine) != KEDGE_OK) return 0;
  step = entry = 0;
  int found = 0;
  kedge_error code = KEDGE_OK;
  // [example]
  int good = code == KEDGE_OK && found && step == 7 && entry == 100;
  for (uint64_t i = 0; i < rows * columns; ++i) good = good && block[i] == (double)(first_row * columns + i);
  return good;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  kedge_engine* engine = NULL;
  const int good = kedge_engine_new(MPI_COMM_WORLD, NULL, &engine) == KEDGE_OK && calls(engine, rank) &&
                   kedge_finalize(engine) == KEDGE_OK;
  if (!good) printf("%s\n", kedge_last_error());
  kedge_engine_free(engine);
  MPI_Finalize();
  return !good;
}

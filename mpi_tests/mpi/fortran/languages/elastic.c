/* Loads what any number of ranks saved in any language, and saves the next step: see other_ranks_test.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "kedge/kedge.h"
#include "kedge/kedge_mpi.h"

enum { ROWS = 12, COLUMNS = 10 };

static void require(kedge_error code) {
  if (code == KEDGE_OK) return;
  fprintf(stderr, "%s\n", kedge_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double element(int32_t step, uint64_t position) { return 1000.0 * step + (double)position; }

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, found = 0;
  kedge_engine* engine = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(kedge_engine_new(MPI_COMM_WORLD, NULL, &engine));
  const uint64_t begin = ROWS * (uint64_t)rank / (uint64_t)ranks, end = ROWS * (uint64_t)(rank + 1) / (uint64_t)ranks;
  const uint64_t first = begin == 0 ? 0 : begin - 1; /* one row more is loaded */
  const uint64_t whole[2] = {ROWS, COLUMNS}, shape[2] = {end - first, COLUMNS}, offset[2] = {first, 0};
  const uint64_t count = shape[0] * COLUMNS;
  int32_t step = 0, own = 0;
  double* block = malloc(count * sizeof *block);
  require(kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found));
  if (found) {
    kedge_info info;
    require(kedge_get_info(engine, &info));
    const uint32_t of = (uint32_t)rank % info.world_size;
    const kedge_want wants[] = {
        {.name = "field",
         .data = block,
         .dtype = KEDGE_FLOAT64,
         .dimensions = 2,
         .shape = shape,
         .placement = KEDGE_PLACEMENT_SHARD,
         .global_shape = whole,
         .offset = offset},
        {.name = "step", .data = &step, .dtype = KEDGE_INT32, .placement = KEDGE_PLACEMENT_REPLICATED},
        {.name = "own", .data = &own, .dtype = KEDGE_INT32, .of = &of}};
    require(kedge_load_all(engine, wants, 3));
    require(kedge_close(engine));
    int good = own == 100 * step + (int32_t)of;
    for (uint64_t i = 0; i < count; ++i) good = good && block[i] == element(step, first * COLUMNS + i);
    printf("rank %d: step %d of %u ranks, %s\n", rank, (int)step, (unsigned)info.world_size, good ? "good" : "wrong");
  } else {
    printf("rank %d: none\n", rank);
  }
  ++step;
  own = 100 * step + rank;
  for (uint64_t i = 0; i < count; ++i) block[i] = element(step, first * COLUMNS + i);
  char tag[KEDGE_TAG_SIZE];
  snprintf(tag, sizeof tag, "step-%d", (int)step);
  const uint64_t mine[2] = {end - begin, COLUMNS}, place[2] = {begin, 0};
  require(kedge_create(engine, tag, NULL, 0));
  kedge_save_shard(engine, "field", block + (begin - first) * COLUMNS, KEDGE_FLOAT64, 2, mine, whole, place, 0);
  kedge_save_replicated(engine, "step", &step, KEDGE_INT32, 0, NULL);
  kedge_save(engine, "own", &own, KEDGE_INT32, 0, NULL);
  require(kedge_commit(engine));
  require(kedge_finalize(engine));
  kedge_engine_free(engine);
  free(block);
  MPI_Finalize();
  return 0;
}

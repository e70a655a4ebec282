/* Heat spreads over a plate, in C99: rows are shared out over the ranks, and the job survives being killed.
 * Kedge's part is marked with [kedge]; everything else is an ordinary MPI program. */
#include <inttypes.h>
#include <kedge/kedge.h>
#include <kedge/kedge_mpi.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint64_t rows, columns, steps;
  const char* every; /* steps between checkpoints; "0" is never */
  uint64_t die_at;
  int die_rank; /* -1: nobody */
} arguments;

/* This rank's rows of the plate, between the rows next to them (index 0 and count + 1). */
typedef struct {
  int rank, ranks;
  uint64_t rows, columns; /* of the whole plate */
  uint64_t first, count;  /* of this rank's rows */
  double *now, *next;
} plate;

static uint64_t first_row(const plate* p, int rank) { return p->rows * (uint64_t)rank / (uint64_t)p->ranks; }

/* Returns 0 and says so if there is no memory or a rank would have no row. */
static int make_plate(plate* p, const arguments* a) {
  MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p->ranks);
  p->rows = a->rows;
  p->columns = a->columns;
  if (p->rows < (uint64_t)p->ranks || p->columns == 0) {
    if (p->rank == 0) fprintf(stderr, "heat_c: every rank needs at least one row and one column\n");
    return 0;
  }
  p->first = first_row(p, p->rank);
  p->count = first_row(p, p->rank + 1) - p->first;
  p->now = calloc((p->count + 2) * p->columns, sizeof *p->now);
  p->next = calloc((p->count + 2) * p->columns, sizeof *p->next);
  if (p->now == NULL || p->next == NULL) {
    fprintf(stderr, "heat_c: rank %d is out of memory for its rows\n", p->rank);
    return 0;
  }
  for (uint64_t row = 0; row < p->count; ++row) { /* a hot disc on a cold plate */
    for (uint64_t column = 0; column < p->columns; ++column) {
      const double y = (double)(2 * (p->first + row)) / (double)p->rows - 1.0;
      const double x = (double)(2 * column) / (double)p->columns - 1.0;
      p->now[(row + 1) * p->columns + column] = x * x + y * y < 0.25 ? 1.0 : 0.0;
    }
  }
  return 1;
}

/* One explicit time step; the plate's rim is insulated. */
static void advance(plate* p) {
  const uint64_t n = p->columns;
  const int width = (int)n, up = p->rank == 0 ? MPI_PROC_NULL : p->rank - 1;
  const int down = p->rank + 1 == p->ranks ? MPI_PROC_NULL : p->rank + 1;
  double *top = p->now + n, *bottom = p->now + p->count * n;
  memcpy(p->now, top, n * sizeof *top); /* at the rim there is no neighbour: the own row stands in */
  memcpy(bottom + n, bottom, n * sizeof *bottom);
  MPI_Sendrecv(top, width, MPI_DOUBLE, up, 0, bottom + n, width, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(bottom, width, MPI_DOUBLE, down, 1, p->now, width, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (uint64_t row = 1; row <= p->count; ++row) {
    for (uint64_t column = 0; column < n; ++column) {
      const double* here = p->now + row * n + column;
      const double left = column == 0 ? *here : here[-1], right = column + 1 == n ? *here : here[1];
      p->next[row * n + column] = *here + 0.2 * (*(here - n) + *(here + n) + left + right - 4.0 * *here);
    }
  }
  double* swap = p->now;
  p->now = p->next;
  p->next = swap;
}

/* FNV-1a over the bytes of the whole field in global order, on rank 0: equal only if every bit is. Rank by rank: each
 * goes on where the one above it ended. */
static uint64_t checksum(const plate* p) {
  uint64_t hash = 0xcbf29ce484222325u;
  if (p->rank > 0) MPI_Recv(&hash, 1, MPI_UINT64_T, p->rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const unsigned char* bytes = (const unsigned char*)(p->now + p->columns);
  for (uint64_t i = 0; i < p->count * p->columns * sizeof *p->now; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  if (p->ranks > 1) MPI_Send(&hash, 1, MPI_UINT64_T, (p->rank + 1) % p->ranks, 2, MPI_COMM_WORLD);
  if (p->ranks > 1 && p->rank == 0)
    MPI_Recv(&hash, 1, MPI_UINT64_T, p->ranks - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return hash;
}

/* [kedge] COLLECTIVE. Restores the newest checkpoint, if there is one, whatever number of ranks saved it, and sets
 * *step. Damage is detected by kedge_close at the latest; the loop then opens the checkpoint before. */
static kedge_error restore(kedge_engine* engine, plate* p, uint64_t* step) {
  const uint64_t shape[2] = {p->count, p->columns}, whole[2] = {p->rows, p->columns}, offset[2] = {p->first, 0};
  const kedge_want wants[] = {
      {.name = "temperature",
       .data = p->now + p->columns,
       .dtype = KEDGE_FLOAT64,
       .dimensions = 2,
       .shape = shape,
       .placement = KEDGE_PLACEMENT_SHARD,
       .global_shape = whole,
       .offset = offset},
      {.name = "step", .data = step, .dtype = KEDGE_UINT64, .placement = KEDGE_PLACEMENT_REPLICATED}};
  kedge_error error = KEDGE_OK;
  do {
    int found = 0;
    error = kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found);
    if (error != KEDGE_OK || !found) return error;
    error = kedge_load_all(engine, wants, 2);
    if (error == KEDGE_OK || error == KEDGE_CORRUPT) error = kedge_close(engine);
  } while (error == KEDGE_CORRUPT);
  kedge_info info;
  if (error == KEDGE_OK) error = kedge_get_info(engine, &info);
  if (error == KEDGE_OK && p->rank == 0) {
    printf("resumed %s %" PRIu64 " %s %" PRIu64 "\n", info.tag, *step, kedge_source_name(info.source),
           info.total_bytes);
    fflush(stdout);
  }
  return error;
}

/* [kedge] COLLECTIVE. One checkpoint, on all ranks or on none. */
static kedge_error save(kedge_engine* engine, const plate* p, uint64_t step) {
  char tag[KEDGE_TAG_SIZE];
  const int64_t steps = (int64_t)step;
  const kedge_attribute attributes[] = {{"step", KEDGE_ATTRIBUTE_INT64, 1, &steps},
                                        {"program", KEDGE_ATTRIBUTE_STRING, 1, "heat_c"}};
  const uint64_t shape[2] = {p->count, p->columns}, whole[2] = {p->rows, p->columns}, offset[2] = {p->first, 0};
  snprintf(tag, sizeof tag, "step-%06" PRIu64, step);
  const kedge_error error = kedge_create(engine, tag, attributes, 2);
  if (error != KEDGE_OK) return error;
  kedge_save_shard(engine, "temperature", p->now + p->columns, KEDGE_FLOAT64, 2, shape, whole, offset, 0);
  kedge_save_replicated(engine, "step", &step, KEDGE_UINT64, 0, NULL);
  return kedge_commit(engine);
}

/* COLLECTIVE. What goes wrong in Kedge goes wrong on all ranks, so that all leave together. */
static kedge_error run(const arguments* a, plate* p, kedge_options* options, kedge_engine** engine) {
  uint64_t step = 0, computed = 0;
  char fingerprint[64]; /* another plate must not go on from this one's checkpoints */
  snprintf(fingerprint, sizeof fingerprint, "heat_c, %" PRIu64 " x %" PRIu64, a->rows, a->columns);
  kedge_options_set(options, "fingerprint", fingerprint); /* [kedge] */
  kedge_options_set(options, "schedule.seconds", "0");    /* [kedge] --every 0: none */
  kedge_options_set(options, "schedule.overhead", "0");
  kedge_options_set(options, "schedule.every", a->every);                /* [kedge] the next line reports */
  kedge_error error = kedge_engine_new(MPI_COMM_WORLD, options, engine); /* [kedge] a bad value */
  if (error == KEDGE_OK) error = restore(*engine, p, &step);             /* [kedge] */
  int ending = 0;
  while (error == KEDGE_OK && step < a->steps && !ending) {
    if (step == a->die_at && p->rank == a->die_rank) raise(SIGKILL);
    advance(p);
    ++step;
    ++computed;
    int needed = 0;
    error = kedge_need_checkpoint(*engine, &needed);                    /* [kedge] */
    if (error == KEDGE_OK && needed) error = save(*engine, p, step);    /* [kedge] */
    if (error == KEDGE_OK) error = kedge_should_exit(*engine, &ending); /* [kedge] */
  }
  if (error == KEDGE_OK) error = kedge_finalize(*engine); /* [kedge] */
  if (error != KEDGE_OK) return error;
  const uint64_t field = checksum(p);
  if (p->rank == 0 && step < a->steps) printf("stopped %" PRIu64 "; start it again to go on\n", step);
  if (p->rank == 0) printf("steps computed %" PRIu64 "\nchecksum %016" PRIx64 "\n", computed, field);
  return error;
}

/* Returns 0 and says so if the command line is not understood. */
static int parse(int count, char** words, arguments* a) {
  for (int i = 1; i < count; i += 2) {
    const char *option = words[i], *value = i + 1 < count ? words[i + 1] : "";
    char* end = NULL;
    const uint64_t number = strtoull(value, &end, 10);
    int known = *value >= '0' && *value <= '9' && *end == '\0';
    if (strcmp(option, "--rows") == 0) a->rows = number;
    else if (strcmp(option, "--columns") == 0) a->columns = number;
    else if (strcmp(option, "--steps") == 0) a->steps = number;
    else if (strcmp(option, "--every") == 0) a->every = value;
    else if (strcmp(option, "--die-at") == 0) a->die_at = number;
    else if (strcmp(option, "--die-rank") == 0) a->die_rank = (int)number;
    else known = 0;
    if (!known) {
      fprintf(stderr, "heat_c: %s is unknown or requires a number\n", option);
      return 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  arguments given = {384, 512, 200, "20", UINT64_MAX, -1};
  int provided = 0, failed = 1, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  plate field = {0};
  kedge_options* options = NULL;
  kedge_engine* engine = NULL;
  int ready = parse(argc, argv, &given) && make_plate(&field, &given) && kedge_options_load(&options) == KEDGE_OK;
  MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (ready && run(&given, &field, options, &engine) == KEDGE_OK) failed = 0;
  else if (ready && rank == 0) fprintf(stderr, "heat_c: %s\n", kedge_last_error()); /* the same on all ranks */
  kedge_engine_free(engine);
  kedge_options_free(options);
  free(field.now);
  free(field.next);
  MPI_Finalize();
  return failed;
}

/* Random walkers, in C99, of a code that has restart files of its own: Kedge only says where to write and read them.
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
  uint64_t walkers, steps; /* walkers of each rank */
  const char* every;       /* steps between checkpoints; "0" is never */
  const char* files;       /* directory to leave the files of the last step in, or NULL */
  uint64_t die_at;
  int die_rank; /* -1: nobody */
} arguments;

typedef struct {
  uint64_t seed;
  int64_t place;
} walker;

typedef struct {
  int rank, ranks;
  uint64_t count, step;
  walker* walkers;
  int64_t* history; /* the sum of all places, after each step */
} walk;

static int make_walk(walk* w, const arguments* a) {
  MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
  w->count = a->walkers;
  w->walkers = calloc(a->walkers + 1, sizeof *w->walkers);
  w->history = calloc(a->steps + 1, sizeof *w->history);
  if (w->walkers == NULL || w->history == NULL) {
    fprintf(stderr, "files_c: rank %d is out of memory\n", w->rank);
    return 0;
  }
  for (uint64_t i = 0; i < w->count; ++i) w->walkers[i].seed = (uint64_t)w->rank * a->walkers + i + 1;
  return 1;
}

static void advance(walk* w) {
  int64_t sum = 0;
  for (uint64_t i = 0; i < w->count; ++i) {
    walker* one = &w->walkers[i];
    one->seed = one->seed * 6364136223846793005u + 1442695040888963407u;
    one->place += (one->seed >> 63) ? 1 : -1;
    sum += one->place;
  }
  w->history[w->step++] = sum;
}

/* The same on all ranks, and equal only if all walkers and their history are. */
static uint64_t checksum(const walk* w) {
  uint64_t hash = 0xcbf29ce484222325u, all = 0;
  const unsigned char* bytes = (const unsigned char*)w->walkers;
  for (uint64_t i = 0; i < w->count * sizeof *w->walkers; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  bytes = (const unsigned char*)w->history;
  for (uint64_t i = 0; i < w->step * sizeof *w->history; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  MPI_Allreduce(&hash, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  return all;
}

/* The files of the program's own: <directory>/restart.<rank> from each rank, <directory>/restart.base from rank 0, as
 * LAMMPS does when it is given "restart.%", and a table. They know nothing of Kedge. Each returns 0 if it fails.
 */

static int write_restart(const walk* w, const char* directory) {
  char path[KEDGE_PATH_SIZE + 32];
  snprintf(path, sizeof path, "%s/restart.%d", directory, w->rank);
  FILE* file = fopen(path, "wb");
  if (file == NULL) return 0;
  int good = fwrite(&w->step, sizeof w->step, 1, file) == 1;
  good = good && fwrite(w->walkers, sizeof *w->walkers, w->count, file) == w->count;
  good = fclose(file) == 0 && good;
  if (w->rank != 0 || !good) return good;
  snprintf(path, sizeof path, "%s/restart.base", directory);
  file = fopen(path, "w");
  if (file == NULL) return 0;
  good = fprintf(file, "ranks %d\nwalkers %" PRIu64 "\nstep %" PRIu64 "\n", w->ranks, w->count, w->step) > 0;
  return fclose(file) == 0 && good;
}

static int read_restart(walk* w, const char* directory, uint64_t steps) {
  char path[KEDGE_PATH_SIZE + 32];
  snprintf(path, sizeof path, "%s/restart.%d", directory, w->rank);
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  int good = fread(&w->step, sizeof w->step, 1, file) == 1 && w->step <= steps;
  good = good && fread(w->walkers, sizeof *w->walkers, w->count, file) == w->count;
  fclose(file);
  return good;
}

static int write_history(const walk* w, const char* path) {
  FILE* file = fopen(path, "w");
  if (file == NULL) return 0;
  int good = fprintf(file, "step,sum\n") > 0;
  for (uint64_t i = 0; i < w->step && good; ++i) {
    good = fprintf(file, "%" PRIu64 ",%" PRId64 "\n", i + 1, w->history[i]) > 0;
  }
  return fclose(file) == 0 && good;
}

static int read_history(walk* w, const char* path) {
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  uint64_t number = 0;
  int good = fscanf(file, "step,sum\n") == 0;
  for (uint64_t i = 0; i < w->step && good; ++i) {
    good = fscanf(file, "%" SCNu64 ",%" SCNd64 "\n", &number, &w->history[i]) == 2 && number == i + 1;
  }
  fclose(file);
  return good;
}

/* [kedge] COLLECTIVE. Goes back to the newest checkpoint, if there is one. All that a rank routed is there again until
 * kedge_close; damage is detected before a file can be read; the loop then opens the checkpoint before. */
static kedge_error restore(kedge_engine* engine, walk* w, uint64_t steps) {
  char restart[KEDGE_PATH_SIZE], history[KEDGE_PATH_SIZE];
  int good = 1;
  kedge_error error = KEDGE_OK;
  do {
    int found = 0;
    error = kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found);
    if (error != KEDGE_OK || !found) return error;
    good = kedge_route_in(engine, "restart/", restart, sizeof restart, NULL) == KEDGE_OK &&
           kedge_route_in(engine, "history.csv", history, sizeof history, NULL) == KEDGE_OK &&
           read_restart(w, restart, steps) && read_history(w, history);
    error = kedge_close(engine); /* says whether all routes on all ranks went well */
  } while (error == KEDGE_CORRUPT);
  if (error == KEDGE_OK && !good) {
    fprintf(stderr, "files_c: rank %d cannot use its restart files\n", w->rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  kedge_info info;
  if (error == KEDGE_OK) error = kedge_get_info(engine, &info);
  if (error == KEDGE_OK && w->rank == 0) {
    printf("resumed %s %" PRIu64 " %s %" PRIu64 "\n", info.tag, w->step, kedge_source_name(info.source),
           info.total_bytes);
    fflush(stdout);
  }
  return error;
}

/* [kedge] COLLECTIVE. One checkpoint, on all ranks or on none. If any rank could not write its
 * files, all ranks abandon the checkpoint. */
static kedge_error save(kedge_engine* engine, const walk* w) {
  char tag[KEDGE_TAG_SIZE], restart[KEDGE_PATH_SIZE], history[KEDGE_PATH_SIZE];
  snprintf(tag, sizeof tag, "step-%06" PRIu64, w->step);
  const kedge_error error = kedge_create(engine, tag, NULL, 0);
  if (error != KEDGE_OK) return error;
  int good = kedge_route_out(engine, "restart/", 0, restart, sizeof restart, NULL) == KEDGE_OK &&
             kedge_route_out(engine, "history.csv", 0, history, sizeof history, NULL) == KEDGE_OK &&
             write_restart(w, restart) && write_history(w, history);
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (good) return kedge_commit(engine);
  if (w->rank == 0) fprintf(stderr, "files_c: %s was not written; the checkpoint before stands\n", tag);
  return kedge_abandon(engine);
}

/* The files of the last step, as kedge extract lays them out. */
static int leave_files(const walk* w, const char* directory) {
  char path[KEDGE_PATH_SIZE];
  snprintf(path, sizeof path, "%s/restart", directory);
  int good = write_restart(w, path);
  if (w->ranks == 1) snprintf(path, sizeof path, "%s/history.csv", directory);
  else snprintf(path, sizeof path, "%s/rank-%d/history.csv", directory, w->rank);
  return good && write_history(w, path);
}

/* COLLECTIVE. What goes wrong in Kedge goes wrong on all ranks, so that all leave together. */
static kedge_error run(const arguments* a, walk* w, kedge_options* options, kedge_engine** engine) {
  uint64_t computed = 0;
  char fingerprint[64]; /* other walkers must not go on from these ones' files */
  snprintf(fingerprint, sizeof fingerprint, "files_c, %" PRIu64, a->walkers);
  kedge_options_set(options, "fingerprint", fingerprint); /* [kedge] */
  kedge_options_set(options, "schedule.seconds", "0");    /* [kedge] --every 0: none */
  kedge_options_set(options, "schedule.overhead", "0");
  kedge_options_set(options, "schedule.every", a->every);                /* [kedge] the next line reports */
  kedge_error error = kedge_engine_new(MPI_COMM_WORLD, options, engine); /* [kedge] a bad value */
  if (error == KEDGE_OK) error = restore(*engine, w, a->steps);          /* [kedge] */
  while (error == KEDGE_OK && w->step < a->steps) {
    if (w->step == a->die_at && w->rank == a->die_rank) raise(SIGKILL);
    advance(w);
    ++computed;
    int needed = 0;
    error = kedge_need_checkpoint(*engine, &needed);           /* [kedge] */
    if (error == KEDGE_OK && needed) error = save(*engine, w); /* [kedge] */
  }
  if (error == KEDGE_OK) error = kedge_finalize(*engine); /* [kedge] */
  if (error != KEDGE_OK) return error;
  if (a->files != NULL && !leave_files(w, a->files)) fprintf(stderr, "files_c: cannot write to %s\n", a->files);
  const uint64_t sum = checksum(w);
  if (w->rank == 0) printf("steps computed %" PRIu64 "\nchecksum %016" PRIx64 "\n", computed, sum);
  return error;
}

/* Returns 0 and says so if the command line is not understood. */
static int parse(int count, char** words, arguments* a) {
  for (int i = 1; i < count; i += 2) {
    const char *option = words[i], *value = i + 1 < count ? words[i + 1] : "";
    char* end = NULL;
    const uint64_t number = strtoull(value, &end, 10);
    int known = *value >= '0' && *value <= '9' && *end == '\0';
    if (strcmp(option, "--files") == 0 && *value != '\0') {
      a->files = value;
      known = 1;
    } else if (strcmp(option, "--walkers") == 0) a->walkers = number;
    else if (strcmp(option, "--steps") == 0) a->steps = number;
    else if (strcmp(option, "--every") == 0) a->every = value;
    else if (strcmp(option, "--die-at") == 0) a->die_at = number;
    else if (strcmp(option, "--die-rank") == 0) a->die_rank = (int)number;
    else known = 0;
    if (!known) {
      fprintf(stderr, "files_c: %s is unknown or requires a value\n", option);
      return 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  arguments given = {100000, 200, "20", NULL, UINT64_MAX, -1};
  int provided = 0, failed = 1, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  walk all = {0};
  kedge_options* options = NULL;
  kedge_engine* engine = NULL;
  int ready = parse(argc, argv, &given) && make_walk(&all, &given) && kedge_options_load(&options) == KEDGE_OK;
  MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (ready && run(&given, &all, options, &engine) == KEDGE_OK) failed = 0;
  else if (ready && rank == 0) fprintf(stderr, "files_c: %s\n", kedge_last_error()); /* the same on all ranks */
  kedge_engine_free(engine);
  kedge_options_free(options);
  free(all.walkers);
  free(all.history);
  MPI_Finalize();
  return failed;
}

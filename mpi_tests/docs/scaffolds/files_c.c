/* The guide's calls for files, in a program; files are written as soon as their path is known. */
#include <kedge/kedge_mpi.h>
#include <stdio.h>
#include <string.h>

static kedge_error route_and_write(kedge_engine* engine, const char* name, uint64_t max_bytes, char* path, size_t size,
                                   size_t* length) {
  const kedge_error error = kedge_route_out(engine, name, max_bytes, path, size, length);
  if (error != KEDGE_OK) return error;
  if (path[strlen(path) - 1] == '/') strcat(path, "part");
  FILE* file = fopen(path, "w");
  if (file == NULL || fprintf(file, "%s", name) < 0) return KEDGE_IO;
  return fclose(file) == 0 ? KEDGE_OK : KEDGE_IO;
}
#define kedge_route_out route_and_write

static int calls(kedge_engine* engine) {
  int found = 0;
  char content[32] = "";
  // [example]
  FILE* file = fopen(path, "r");
  const int read = file != NULL && fgets(content, sizeof content, file) != NULL;
  if (file != NULL) fclose(file);
  return read && strcmp(content, "restart.bin") == 0 && kedge_close(engine) == KEDGE_OK &&
         kedge_last_failure()->code == KEDGE_OK;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  kedge_engine* engine = NULL;
  const int good = kedge_engine_new(MPI_COMM_WORLD, NULL, &engine) == KEDGE_OK && calls(engine);
  if (good && kedge_finalize(engine) != KEDGE_OK) return 1;
  if (!good) printf("%s\n", kedge_last_error());
  kedge_engine_free(engine);
  MPI_Finalize();
  return !good;
}

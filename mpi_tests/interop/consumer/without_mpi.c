#include <kedge/kedge.h>
#include <stdio.h>

int main(void) {
  kedge_options* options = NULL;
  char every[16] = "";
  if (kedge_options_load(&options) != KEDGE_OK) return 1;
  kedge_options_get(options, "schedule.every", every, sizeof every, NULL);
  kedge_options_free(options);
  /* A call of the engine pulls all of the library in. */
  const kedge_error error = kedge_finalize(NULL);
  printf("every %s, %s\n", every, kedge_error_name(error));
  return error == KEDGE_INVALID_ARGUMENT ? 0 : 1;
}

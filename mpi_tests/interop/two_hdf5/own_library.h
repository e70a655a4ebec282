/* The application's own library. */
#ifndef OWN_LIBRARY_H
#define OWN_LIBRARY_H
#ifdef __cplusplus
extern "C" {
#endif
/* COLLECTIVE over MPI_COMM_WORLD. Writes each rank's value to one file and reads it back; 0 if that worked. */
int own_write(const char* path, int value);
#ifdef __cplusplus
}
#endif
#endif

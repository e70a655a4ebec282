/* What an application's own I/O library does: all ranks write one file together, by parallel HDF5. */
#include "own_library.h"

#include <hdf5.h>
#include <mpi.h>

int own_write(const char* path, int value) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) < 0) return -1;
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hsize_t all = (hsize_t)ranks, mine = (hsize_t)rank, one = 1;
  const hid_t space = H5Screate_simple(1, &all, NULL), here = H5Screate_simple(1, &one, NULL);
  const hid_t data = H5Dcreate2(file, "values", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &mine, NULL, &one, NULL);
  const hid_t together = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  int read = 0;
  const int good = H5Dwrite(data, H5T_NATIVE_INT, here, space, together, &value) >= 0 &&
                   H5Dread(data, H5T_NATIVE_INT, here, space, together, &read) >= 0 && read == value;
  H5Dclose(data);
  H5Sclose(space);
  H5Sclose(here);
  H5Pclose(together);
  H5Fclose(file);
  H5Pclose(access);
  return good ? 0 : -1;
}

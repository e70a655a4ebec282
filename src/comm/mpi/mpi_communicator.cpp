#include "kedge/mpi.hpp"

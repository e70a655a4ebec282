// What tests ask of the fake cuFile (fake_cufile.cpp), beside the functions of cuFile's.
#pragma once

#include <cstddef>

extern "C" {

/// Everything as at first: there is no native path.
void fake_cufile_reset(void);
/// What the driver says: kinds of storage with a native path, and whether configuration forces the compatibility mode.
void fake_cufile_says(unsigned status_flags, bool forces_compat);
/// The nth call of this function from now on (1 is the next) returns `result`; cuFileWrite: that, with this errno.
void fake_cufile_fail(const char* function, int nth, int result, int error);
/// No call of cuFileWrite writes more at once.
void fake_cufile_write_max(std::size_t bytes);
/// Files that are registered.
int fake_cufile_handles(void);
/// Calls of cuFileWrite so far, and their bytes.
int fake_cufile_writes(void);
std::size_t fake_cufile_bytes(void);
}

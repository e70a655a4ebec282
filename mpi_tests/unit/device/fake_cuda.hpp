// What tests ask of the fake CUDA driver (fake_cuda.cpp), beside the functions of CUDA's.
#pragma once

#include <cstddef>

extern "C" {

/// Before it nothing is known of any memory, as before cuInit.
void fake_cuda_begin(void);
/// Everything as at first.
void fake_cuda_reset(void);
/// Memory of a device that the host cannot touch. Of a pool: of no context.
void* fake_cuda_allocate(std::size_t size_bytes, int ordinal, bool of_pool);
/// The same bytes, as the device sees them.
std::byte* fake_cuda_contents(void* address);
/// Runs when the stream, or the device, is waited for.
void fake_cuda_launch(void* stream, void (*kernel)(void*), void* argument);
/// The nth call of this function from now on (1 is the next) returns `result`; all later ones too, if `for_good`.
void fake_cuda_fail(const char* function, int nth, int result, bool for_good);
/// Another thread captures a stream from now on, or no more: what allocates and frees must not meet that.
void fake_cuda_capture(bool captures);
/// Contexts that this thread has pushed and not popped.
int fake_cuda_pushed(void);
/// Streams and pinned allocations that exist.
int fake_cuda_streams(void);
int fake_cuda_pinned(void);
/// Modules that are loaded.
int fake_cuda_modules(void);
/// Memory that was registered and is not unregistered.
int fake_cuda_registered(void);
}

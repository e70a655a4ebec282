#include "c_api/out_of_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace kedge::faults {
namespace {

thread_local long allocations_left = -1;  // negative: no limit

}  // namespace

OutOfMemory::OutOfMemory(long after) noexcept { allocations_left = after; }
OutOfMemory::~OutOfMemory() { allocations_left = -1; }
bool OutOfMemory::still_some() noexcept { return allocations_left > 0; }

static void* allocate(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;  // NOLINT(cppcoreguidelines-no-malloc)
  throw std::bad_alloc();
}

static void give_back(void* memory) noexcept { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)

}  // namespace kedge::faults

void* operator new(std::size_t size) { return kedge::faults::allocate(size); }
void operator delete(void* memory) noexcept { kedge::faults::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { kedge::faults::give_back(memory); }

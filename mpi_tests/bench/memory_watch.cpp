#include "memory_watch.hpp"

#include <algorithm>
#include <chrono>

#include "surroundings.hpp"

namespace kedge_bench {

MemoryWatch::MemoryWatch(std::uint64_t begin_bytes)
    : begin_bytes_(begin_bytes), most_bytes_(begin_bytes_), thread_([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          most_bytes_ = std::max(most_bytes_, private_bytes());
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
        }
      }) {}

std::uint64_t MemoryWatch::peak_bytes() {
  thread_.request_stop();
  thread_.join();
  return most_bytes_ - begin_bytes_;
}

}  // namespace kedge_bench

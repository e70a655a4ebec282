// Over the fake CUDA driver, which is loaded as an application would.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "device/staging.hpp"
#include "unit/device/fake_cuda.hpp"

namespace kedge::device {

/// The functions of the fake, which is loaded once: as if by the application.
struct Fake {
  Fake() : library(::dlopen(KEDGE_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL)) {
    if (library == nullptr) throw std::runtime_error(::dlerror());
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find("fake_cuda_begin", begin);
    find("fake_cuda_reset", reset);
    find("fake_cuda_allocate", allocate);
    find("fake_cuda_contents", contents);
    find("fake_cuda_launch", launch);
    find("fake_cuda_fail", fail);
    find("fake_cuda_pushed", pushed);
    find("fake_cuda_streams", streams);
    find("fake_cuda_pinned", pinned);
    find("fake_cuda_registered", registered);
    find("fake_cuda_capture", capture);
    find("fake_cuda_modules", modules);
  }
  void* library;
  decltype(&fake_cuda_begin) begin = nullptr;
  decltype(&fake_cuda_reset) reset = nullptr;
  decltype(&fake_cuda_allocate) allocate = nullptr;
  decltype(&fake_cuda_contents) contents = nullptr;
  decltype(&fake_cuda_launch) launch = nullptr;
  decltype(&fake_cuda_fail) fail = nullptr;
  decltype(&fake_cuda_pushed) pushed = nullptr;
  decltype(&fake_cuda_streams) streams = nullptr;
  decltype(&fake_cuda_pinned) pinned = nullptr;
  decltype(&fake_cuda_registered) registered = nullptr;
  decltype(&fake_cuda_capture) capture = nullptr;
  decltype(&fake_cuda_modules) modules = nullptr;
};

inline const Fake& fake() {
  static const Fake one;
  return one;
}

class Cuda : public testing::Test {
 protected:
  Cuda() { fake().begin(); }
  ~Cuda() override {
    EXPECT_EQ(fake().pushed(), 0) << "the application's context is not current any more";
    fake().reset();
  }
  std::byte* allocate(std::size_t size_bytes, int ordinal = 0, bool of_pool = false) {
    auto* address = static_cast<std::byte*>(fake().allocate(size_bytes, ordinal, of_pool));
    unsigned seed = 1;
    for (std::size_t i = 0; i < size_bytes; ++i) {
      fake().contents(address)[i] = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
    }
    return address;
  }
  static std::vector<std::byte> contents(std::byte* address, std::size_t size_bytes) {
    return {fake().contents(address), fake().contents(address) + size_bytes};
  }
  static std::vector<std::byte> read(Staging& staging, std::byte* address, std::size_t size_bytes) {
    std::vector<std::byte> all;
    staging.read(
        {address, size_bytes, staging.devices().location_of(address)},
        [&](std::uint64_t, std::span<const std::byte> piece) { all.insert(all.end(), piece.begin(), piece.end()); });
    return all;
  }
};

}  // namespace kedge::device

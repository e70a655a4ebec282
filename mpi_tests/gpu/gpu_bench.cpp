// What a checkpoint of a GPU's memory costs, against what the same machine's copies cost in the same run. Where there
// is no GPU the program says so and exits with 77.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "bench/series.hpp"
#include "gpu/gpu.hpp"
#include "kedge/kedge.hpp"
#include "kedge/transport.hpp"

namespace kedge::gpu {
namespace {

struct Arguments {
  std::size_t bytes = std::size_t{1} << 30U;
  int rounds = 7;
  std::string store = "/dev/shm";
  std::string json;
};

std::optional<Arguments> arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--bytes") arguments.bytes = std::stoull(argv[i + 1]);
    else if (name == "--rounds") arguments.rounds = std::stoi(argv[i + 1]);
    else if (name == "--store") arguments.store = argv[i + 1];
    else if (name == "--json") arguments.json = argv[i + 1];
    else return std::nullopt;
  }
  if (argc % 2 == 0 || arguments.bytes == 0 || arguments.rounds < 1) return std::nullopt;
  return arguments;
}

/// One thing that is measured, round by round: seconds.
struct Row {
  std::string name;
  std::function<void()> work;
  Engine* saves = nullptr;  ///< around it a checkpoint is created and committed
  Engine* loads = nullptr;  ///< or opened and closed
  std::vector<double> seconds = {};
  std::vector<double> warm_up = {};
  bool commits = false;  ///< the work does
};

/// Copies between the GPU and pinned memory of its own, as fast as the driver can: in pieces, on streams of their own.
class PinnedCopies {
 public:
  static constexpr std::size_t kPiece = std::size_t{16} << 20U;

  explicit PinnedCopies(const Gpu& gpu) : gpu_(gpu) {
    for (int i = 0; i < 4; ++i) slots_.push_back({gpu.allocate_pinned(kPiece), gpu.make_stream()});
  }
  ~PinnedCopies() {
    for (const Slot& slot : slots_) gpu_.free_pinned(slot.memory);
  }
  PinnedCopies(const PinnedCopies&) = delete;
  PinnedCopies& operator=(const PinnedCopies&) = delete;

  void to_host(CUdeviceptr from, std::size_t size_bytes) const {
    each(size_bytes, [&](const Slot& slot, std::size_t offset, std::size_t length) {
      gpu_.copy(reinterpret_cast<std::uintptr_t>(slot.memory), from + offset, length, slot.stream);  // NOLINT
    });
  }
  void to_device(CUdeviceptr to, std::size_t size_bytes) const {
    each(size_bytes, [&](const Slot& slot, std::size_t offset, std::size_t length) {
      gpu_.copy(to + offset, reinterpret_cast<std::uintptr_t>(slot.memory), length, slot.stream);  // NOLINT
    });
  }

 private:
  struct Slot {
    std::byte* memory;
    CUstream stream;
  };
  template <class Copy>
  void each(std::size_t size_bytes, Copy&& copy) const {
    std::size_t slot = 0;
    for (std::size_t offset = 0; offset < size_bytes; offset += kPiece, slot = (slot + 1) % slots_.size()) {
      copy(slots_[slot], offset, std::min(kPiece, size_bytes - offset));
    }
    for (const Slot& one : slots_) gpu_.wait(one.stream);
  }

  const Gpu& gpu_;
  std::vector<Slot> slots_;
};

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void require(const Status& status) {
  if (!status) throw Error(status.failure());
}

const std::vector<double>& of(const std::vector<Row>& rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.seconds;
  }
  std::abort();
}

nlohmann::json report(const Gpu& gpu, const Arguments& arguments, const std::vector<Row>& rows) {
  nlohmann::json all;
  all["gpu"] = gpu.name();
  all["driver"] = gpu.driver_version();
  all["bytes"] = arguments.bytes;
  std::printf("%s, driver of CUDA %d, %zu bytes, %d rounds\n", gpu.name().c_str(), gpu.driver_version(),
              arguments.bytes, arguments.rounds);
  for (const Row& row : rows) {
    const auto summary = kedge_bench::summarize(row.seconds);
    const double rate = static_cast<double>(arguments.bytes) / summary.median / 1e9;
    all["rows"][row.name] = {{"seconds", row.seconds}, {"warm_up_seconds", row.warm_up}, {"gb_per_s", rate}};
    const auto slowest = static_cast<double>(arguments.bytes) / *std::ranges::max_element(row.warm_up) / 1e9;
    std::printf("  %-28s %8.2f GB/s  (median of %d, spread %.0f %%; slowest warm-up %.2f)\n", row.name.c_str(), rate,
                arguments.rounds, summary.spread() * 100, slowest);
  }
  const std::pair<std::string, std::pair<std::string, std::string>> wanted[] = {
      {"save from the GPU / pinned copy to the host", {"save from the GPU", "pinned copy to the host"}},
      {"save from the GPU / save from the host", {"save from the GPU", "save from the host"}},
      {"save by buffers / pinned copy to the host", {"save by buffers", "pinned copy to the host"}},
      {"snapshot, with commit / copy within the GPU", {"snapshot, with commit", "copy within the GPU"}},
      {"load to the GPU / pinned copy to the GPU", {"load to the GPU", "pinned copy to the GPU"}},
      {"load to the GPU / load to the host", {"load to the GPU", "load to the host"}}};
  for (const auto& [name, pair] : wanted) {
    const auto summary = kedge_bench::summarize(kedge_bench::ratios(of(rows, pair.first), of(rows, pair.second)));
    all["ratios"][name] = summary.median;
    std::printf("  %-48s %5.2f (%.2f to %.2f)\n", name.c_str(), summary.median, summary.min, summary.max);
  }
  return all;
}

/// Removed at the end, with all in it.
struct Directory {
  explicit Directory(std::string at) : path(std::move(at)) { std::filesystem::create_directories(path); }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string path;
};

Options options_of(const std::string& directory, const std::string& run, bool direct, bool snapshot = false) {
  Options options;
  options.run = run;
  options.store.path = directory + "/store-" + run;
  options.persistent.path = directory + "/prefix";
  options.pipeline.mode = snapshot ? PipelineMode::background : PipelineMode::inline_;
  options.device.direct = direct;
  options.device.snapshot = snapshot;
  options.log.level = LogLevel::info;
  options.log.sink = [](LogLevel level, std::string_view line) {
    const bool is_of_interest = level >= LogLevel::warning || line.find("pinned buffers") != std::string_view::npos;
    if (is_of_interest) std::printf("  %.*s\n", static_cast<int>(line.size()), line.data());
  };
  return options;
}

/// In turn, with two rounds to warm up: files are new at first, and memory is registered when they are used again.
void measure(std::vector<Row>& rows, int rounds) {
  for (int round = -2; round < rounds; ++round) {
    for (Row& row : rows) {
      if (row.saves != nullptr) row.saves->create("step");
      if (row.loads != nullptr) row.loads->open();
      const double seconds = seconds_of(row.work);
      if (row.saves != nullptr && !row.commits) row.saves->commit();
      if (row.commits) row.saves->wait("step", Level::local);  // not beside what is measured next
      if (row.loads != nullptr) row.loads->close();
      (round < 0 ? row.warm_up : row.seconds).push_back(seconds);
    }
  }
}

void run(const Gpu& gpu, const Arguments& arguments) {
  const Directory own(arguments.store + "/kedge-gpu-bench-" + std::to_string(::getpid()));
  Engine engine(single_process(), options_of(own.path, "direct", true));
  Engine by_buffers(single_process(), options_of(own.path, "buffers", false));
  Engine behind(single_process(), options_of(own.path, "snapshot", true, true));
  const std::size_t bytes = arguments.bytes;
  const Array array(gpu, bytes);
  const Array other(gpu, bytes);
  gpu.fill(array.at, 7, bytes, nullptr);
  gpu.synchronize();
  std::vector<std::byte> host(bytes, std::byte{7});
  std::vector<std::byte> target(bytes);
  const PinnedCopies pinned(gpu);
  const Region on_gpu{array.address(), DataType::uint8, Shape{bytes}};
  const Region on_host{host.data(), DataType::uint8, Shape{bytes}};
  const MutableRegion to_host{target.data(), DataType::uint8, Shape{bytes}};
  const MutableRegion to_gpu{other.address(), DataType::uint8, Shape{bytes}};
  std::vector<Row> rows;
  rows.push_back({"pinned copy to the host", [&] { pinned.to_host(array.at, bytes); }});
  rows.push_back({"pinned copy to the GPU", [&] { pinned.to_device(other.at, bytes); }});
  rows.push_back({"copy within the GPU", [&] {
                    gpu.copy(other.at, array.at, bytes, nullptr);
                    gpu.synchronize();
                  }});
  rows.push_back({"memcpy on the host", [&] { std::memcpy(target.data(), host.data(), bytes); }});
  rows.push_back({"save from the host", [&] { require(engine.save("field", on_host)); }, &engine});
  rows.push_back({"save from the GPU", [&] { require(engine.save("field", on_gpu)); }, &engine});
  rows.push_back({"save by buffers", [&] { require(by_buffers.save("field", on_gpu)); }, &by_buffers});
  rows.push_back({"snapshot, with commit",
                  [&] {
                    require(behind.save("field", on_gpu));
                    behind.commit();
                  },
                  &behind});
  rows.back().commits = true;
  rows.push_back({"load to the host", [&] { require(engine.load("field", to_host)); }, nullptr, &engine});
  rows.push_back({"load to the GPU", [&] { require(engine.load("field", to_gpu)); }, nullptr, &engine});
  measure(rows, arguments.rounds);
  const nlohmann::json all = report(gpu, arguments, rows);
  if (!arguments.json.empty()) std::ofstream(arguments.json) << all.dump(2) << '\n';
}

}  // namespace
}  // namespace kedge::gpu

int main(int argc, char** argv) {
  const auto arguments = kedge::gpu::arguments_of(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "usage: gpu_bench [--bytes N] [--rounds N] [--store DIRECTORY] [--json FILE]\n");
    return 2;
  }
  std::string why;
  try {
    const auto gpu = kedge::gpu::Gpu::first(why);
    if (!gpu) {
      std::printf("skipped: %s\n", why.c_str());
      return 77;
    }
    kedge::gpu::run(*gpu, *arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}

#include "gpu/device_bench.hpp"

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
#include "gpu/kernels.hpp"
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
  double traffic = 0;       ///< with the GPU's memory, in multiples of the measured size; 0: the size once, copied
  std::vector<double> seconds = {};
  std::vector<double> prefault = {};
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
    const double moved = static_cast<double>(arguments.bytes) * (row.traffic == 0 ? 1 : row.traffic);
    const double rate = moved / summary.median / 1e9;
    all["rows"][row.name] = {{"seconds", row.seconds}, {"warm_up_seconds", row.prefault}, {"gb_per_s", rate}};
    const auto slowest = moved / *std::ranges::max_element(row.prefault) / 1e9;
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
  const auto add_ratio = [&](const std::string& name, std::vector<double> values) {
    const auto summary = kedge_bench::summarize(std::move(values));
    all["ratios"][name] = summary.median;
    std::printf("  %-48s %5.2f (%.2f to %.2f)\n", name.c_str(), summary.median, summary.min, summary.max);
  };
  for (const auto& [name, pair] : wanted)
    add_ratio(name, kedge_bench::ratios(of(rows, pair.first), of(rows, pair.second)));
  // How much of the memory's bandwidth, as a copy has it, which reads and writes.
  for (const Row& row : rows) {
    if (row.traffic == 0) continue;
    auto values = kedge_bench::ratios(of(rows, "copy within the GPU"), row.seconds);
    for (double& value : values) value *= row.traffic / 2;
    add_ratio(row.name + ", memory traffic / that of a copy", std::move(values));
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
  options.device.path = direct ? DevicePath::automatic : DevicePath::buffers;
  options.device.snapshot = snapshot;
  options.log.level = LogLevel::info;
  options.log.sink = [](LogLevel level, std::string_view line) {
    const bool is_of_interest = level >= LogLevel::warning || line.find("pinned buffers") != std::string_view::npos ||
                                line.find("checksums of GPU") != std::string_view::npos;
    if (is_of_interest) std::printf("  %.*s\n", static_cast<int>(line.size()), line.data());
  };
  return options;
}

/// How fast the checksums' kernel is.
class KernelRow {
 public:
  KernelRow(const Gpu& gpu, std::size_t size_bytes) : gpu_(gpu), size_bytes_(size_bytes), kernels_(gpu) {
    if (!kernels_.exist()) return;
    memory_ = std::make_unique<Array>(gpu, size_bytes_);
    raw_ = std::make_unique<Array>(gpu, 4 * (size_bytes_ / kPiece + 1));
    gpu.fill(memory_->at, 37, size_bytes_, nullptr);
  }

  void add(std::vector<Row>& rows) const {
    if (!kernels_.exist()) {
      std::printf("  skipped: the kernel, as this build has none\n");
      return;
    }
    rows.push_back({"CRC32C kernel", [this] {
                      kernels_.checksums(memory_->at, size_bytes_, kPiece, raw_->at);
                      gpu_.synchronize();
                    }});
    rows.back().traffic = 1;
  }

 private:
  static constexpr std::uint64_t kPiece = std::uint64_t{4} << 20U;  // as of a transfer of 1 GiB

  const Gpu& gpu_;
  std::size_t size_bytes_;
  Kernels kernels_;
  std::unique_ptr<Array> memory_;
  std::unique_ptr<Array> raw_;
};

/// Files are new at first, and are registered when they are used for the third time.
constexpr int kWarmUpRounds = 12;

/// In turn.
void measure(std::vector<Row>& rows, int rounds) {
  for (int round = -kWarmUpRounds; round < rounds; ++round) {
    for (Row& row : rows) {
      if (row.saves != nullptr) row.saves->create("step");
      if (row.loads != nullptr) row.loads->open();
      const double seconds = seconds_of(row.work);
      if (row.saves != nullptr && !row.commits) row.saves->commit();
      if (row.commits) row.saves->wait("step", Level::local);  // not beside what is measured next
      if (row.loads != nullptr) row.loads->close();
      (round < 0 ? row.prefault : row.seconds).push_back(seconds);
    }
  }
}

void run(const Gpu& gpu, const Arguments& arguments) {
  const Directory own(arguments.store + "/kedge-gpu-bench-" + std::to_string(::getpid()));
  // Each its own: an engine copies straight only if its last checkpoint came mostly from a GPU.
  Engine of_host(single_process(), options_of(own.path, "host", true));
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
  rows.push_back({"save from the host", [&] { require(of_host.save("field", on_host)); }, &of_host});
  rows.push_back({"save from the GPU", [&] { require(engine.save("field", on_gpu)); }, &engine});
  rows.push_back({"save by buffers", [&] { require(by_buffers.save("field", on_gpu)); }, &by_buffers});
  rows.push_back({"snapshot, with commit",
                  [&] {
                    require(behind.save("field", on_gpu));
                    behind.commit();
                  },
                  &behind});
  rows.back().commits = true;
  rows.push_back({"snapshot, until local",
                  [&] {
                    require(behind.save("field", on_gpu));
                    behind.commit();
                    behind.wait("step", Level::local);
                  },
                  &behind});
  rows.back().commits = true;
  rows.push_back({"load to the host", [&] { require(of_host.load("field", to_host)); }, nullptr, &of_host});
  rows.push_back({"load to the GPU", [&] { require(engine.load("field", to_gpu)); }, nullptr, &engine});
  const KernelRow kernel(gpu, bytes);
  kernel.add(rows);
  measure(rows, arguments.rounds);
  const nlohmann::json all = report(gpu, arguments, rows);
  if (!arguments.json.empty()) std::ofstream(arguments.json) << all.dump(2) << '\n';
}

}  // namespace

int device_bench(int argc, char** argv, const char* program) {
  const auto arguments = arguments_of(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "usage: %s [--bytes N] [--rounds N] [--store DIRECTORY] [--json FILE]\n", program);
    return 2;
  }
  std::string why;
  try {
    const auto gpu = Gpu::first(why);
    if (!gpu) {
      std::printf("skipped: %s\n", why.c_str());
      return 77;
    }
    run(*gpu, *arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace kedge::gpu

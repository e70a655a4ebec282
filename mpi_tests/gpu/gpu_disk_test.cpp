// Checkpoints from the memory of a real GPU in a store on a disk, by GPUDirect Storage where it is installed.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "kedge/kedge.hpp"
#include "kedge/transport.hpp"

namespace kedge::gpu::gpu_disk_test {
namespace {

constexpr std::size_t kSize = (std::size_t{12} << 20U) + 5;
constexpr long kTmpfsMagic = 0x01021994;

class OnGpuDisk : public testing::Test {
 protected:
  OnGpuDisk() {
    const char* disk = std::getenv("KEDGE_TEST_GPU_DISK");
    parent = disk == nullptr ? "/tmp" : disk;
    directory = parent + "/kedge-gds-" + std::to_string(::getpid());
    std::string why;
    gpu = Gpu::first(why);
    gpu->use();
  }
  ~OnGpuDisk() override { std::filesystem::remove_all(directory); }

  /// Commits some checkpoints and loads each again. What its newest container has behind the superblock.
  std::vector<char> containers_with(DevicePath path) {
    Options options;
    options.run = path == DevicePath::buffers ? "buffers" : "gds";
    options.store.path = directory + "/" + options.run;
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 0;
    options.store.durable = true;
    options.device.path = path;
    options.log.level = LogLevel::info;
    options.log.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
    std::filesystem::create_directories(options.store.path);
    Engine engine(single_process(), options);
    const Array array(*gpu, kSize);
    for (std::uint32_t step = 0; step < 4; ++step) {
      const auto saved = noise(kSize, step);
      gpu->upload(array.at, saved.data(), kSize);
      engine.create("t");
      EXPECT_TRUE(engine.save("field", Region{array.address(), DataType::uint8, Shape{kSize}}));
      engine.commit();
      std::vector<std::byte> found(kSize);
      engine.open();
      EXPECT_TRUE(engine.load("field", MutableRegion{found.data(), DataType::uint8, Shape{kSize}}));
      engine.close();
      EXPECT_TRUE(found == saved) << step;
    }
    std::vector<char> newest;
    auto newest_time = std::filesystem::file_time_type::min();
    for (const auto& one : std::filesystem::recursive_directory_iterator(options.store.path)) {
      if (one.path().extension() != ".h5" || one.last_write_time() < newest_time) continue;
      newest_time = one.last_write_time();
      std::ifstream file(one.path(), std::ios::binary);
      file.seekg(4096);
      newest.assign(std::istreambuf_iterator<char>(file), {});
    }
    engine.finalize();
    return newest;
  }
  [[nodiscard]] std::string line_with(std::string_view part) const {
    const auto found = std::ranges::find_if(lines, [&](const auto& line) { return line.find(part) != line.npos; });
    return found == lines.end() ? std::string() : *found;
  }

  std::unique_ptr<Gpu> gpu;
  std::string parent;
  std::string directory;
  std::vector<std::string> lines;
};

// In whatever mode cuFile works here: the line says which.
TEST_F(OnGpuDisk, TheFileIsTheSameByGpuDirectStorage) {
  struct statfs filesystem {};
  if (::statfs(parent.c_str(), &filesystem) != 0 || filesystem.f_type == kTmpfsMagic) {
    GTEST_SKIP() << parent << " is not on a disk: set KEDGE_TEST_GPU_DISK to a directory on one";
  }
  if (::dlopen("libcufile.so.0", RTLD_NOW) == nullptr) GTEST_SKIP() << "cuFile is not installed: " << ::dlerror();
  const auto with = containers_with(DevicePath::gds);
  const std::string refused = line_with("not by GPUDirect Storage");
  if (!refused.empty()) GTEST_SKIP() << refused;
  const std::string used = line_with("is written to the node-local store by GPUDirect Storage");
  EXPECT_FALSE(used.empty());
  std::printf("%s\n", used.c_str());
  lines.clear();
  const auto buffered = containers_with(DevicePath::buffers);
  EXPECT_TRUE(line_with("GPUDirect").empty());
  ASSERT_GT(buffered.size(), kSize);
  EXPECT_TRUE(with == buffered);
}

}  // namespace
}  // namespace kedge::gpu::gpu_disk_test

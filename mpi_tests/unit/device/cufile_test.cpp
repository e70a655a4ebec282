// Files that CUDA devices write by cuFile, over fakes of both libraries: when it is used, and what a failure is.
#include "device/cufile.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "device/cuda_direct_file.hpp"
#include "device/storage_kind.hpp"
#include "unit/device/cuda_fixture.hpp"
#include "unit/device/fake_cufile.hpp"

namespace kedge::device::cufile_test {
namespace {

constexpr unsigned kNvme = 1U << 4U;
constexpr unsigned kP2p = 1U << 11U;
constexpr std::size_t kSize = std::size_t{64} << 10U;

struct FakeCuFile {
  FakeCuFile() : library(::dlopen(KEDGE_FAKE_CUFILE, RTLD_NOW | RTLD_GLOBAL)) {
    if (library == nullptr) throw std::runtime_error(::dlerror());
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find("fake_cufile_reset", reset);
    find("fake_cufile_says", says);
    find("fake_cufile_fail", fail);
    find("fake_cufile_write_max", write_max);
    find("fake_cufile_handles", handles);
    find("fake_cufile_writes", writes);
    find("fake_cufile_bytes", bytes);
  }
  void* library;
  decltype(&fake_cufile_reset) reset = nullptr;
  decltype(&fake_cufile_says) says = nullptr;
  decltype(&fake_cufile_fail) fail = nullptr;
  decltype(&fake_cufile_write_max) write_max = nullptr;
  decltype(&fake_cufile_handles) handles = nullptr;
  decltype(&fake_cufile_writes) writes = nullptr;
  decltype(&fake_cufile_bytes) bytes = nullptr;
};

const FakeCuFile& fake_cufile() {
  static const FakeCuFile one;
  return one;
}

class CuFileOfDevices : public Cuda {
 protected:
  CuFileOfDevices() : driver(CudaDriver::load_from(fake().library)), cufile((fake_cufile().reset(), CuFile::load())) {
    std::string path = testing::TempDir() + "kedge-cufile-XXXXXX";
    const int created = ::mkstemp(path.data());
    descriptor = ::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    buffered = created;
    ::unlink(path.c_str());
    if (::ftruncate(created, 2 * kSize) != 0) throw std::runtime_error("ftruncate");
  }
  ~CuFileOfDevices() override {
    EXPECT_EQ(fake_cufile().handles(), 0) << "registrations end before their files are closed";
    ::close(descriptor);
    ::close(buffered);
  }
  void SetUp() override {
    if (descriptor < 0) GTEST_SKIP() << testing::TempDir() << " does not support O_DIRECT";
    fake_cufile().says(kNvme, false);
  }
  std::unique_ptr<DirectFile> file(unsigned kinds = kNvme) {
    return cuda_direct_file(*driver, *cufile, location(), descriptor, kinds);
  }
  MemoryLocation location() { return system_devices()->location_of(memory); }
  std::vector<std::byte> written() const {
    std::vector<std::byte> bytes(kSize);
    EXPECT_EQ(::pread(buffered, bytes.data(), kSize, 4096), static_cast<ssize_t>(kSize));
    return bytes;
  }
  /// What the whole memory's way to the file fails with.
  std::optional<Failure> failure_of_write() {
    return attempt([&] { file()->write(location(), 4096, {memory, kSize}); });
  }

  std::unique_ptr<const CudaDriver> driver;
  std::unique_ptr<const CuFile> cufile;
  std::byte* memory = allocate(kSize);
  int descriptor = -1;
  int buffered = -1;
};

TEST_F(CuFileOfDevices, WritesWhereItHasANativePath) {
  const auto direct = file();
  EXPECT_EQ(fake_cufile().handles(), 1);
  direct->write(location(), 4096, {memory, kSize});
  EXPECT_EQ(written(), contents(memory, kSize));
  EXPECT_EQ(direct->method(), "past host memory");
  EXPECT_EQ(fake_cufile().writes(), 1);
}

TEST_F(CuFileOfDevices, ByTheKernelsPathThatNeedsNoDriver) {
  fake_cufile().says(kP2p, false);
  EXPECT_EQ(file(kNvme | kP2p)->method(), "past host memory");
}

TEST_F(CuFileOfDevices, GoesOnAfterShortWrites) {
  fake_cufile().write_max(20480);
  file()->write(location(), 4096, {memory, kSize});
  EXPECT_EQ(written(), contents(memory, kSize));
  EXPECT_EQ(fake_cufile().writes(), 4);
}

TEST_F(CuFileOfDevices, TheCompatibilityModeServesWhereThereIsNoNativePath) {
  for (const bool is_forced : {false, true}) {
    fake_cufile().says(is_forced ? kNvme : 0U, is_forced);
    const auto by_host = file();
    by_host->write(location(), 4096, {memory, kSize});
    EXPECT_EQ(written(), contents(memory, kSize));
    EXPECT_NE(by_host->method().find("compatibility mode"), std::string::npos);
  }
  fake_cufile().says(kNvme, false);
  EXPECT_NE(file(1U)->method().find("compatibility mode"), std::string::npos)
      << "it has one for another kind of storage";
}

TEST_F(CuFileOfDevices, SaysWhyItDoesNotServe) {
  const auto absent = attempt([] { (void)CuFile::load("libcufile-that-is-not-there.so.0"); });
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->code, ErrorCode::bad_state);
  EXPECT_NE(absent->message.find("install GPUDirect Storage"), std::string::npos) << absent->message;
  const auto other = attempt([] { (void)CuFile::load("libdl.so.2"); });
  ASSERT_TRUE(other);
  EXPECT_NE(other->message.find("is missing cuFileDriverOpen"), std::string::npos) << other->message;

  fake_cufile().fail("cuFileDriverOpen", 1, 5001, 0);
  const auto closed = attempt([&] { (void)file(); });
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->code, ErrorCode::bad_state);
  EXPECT_NE(closed->message.find("5001 (the driver nvidia-fs is not loaded)"), std::string::npos) << closed->message;
  fake_cufile().fail("cuFileHandleRegister", 1, 5008, 0);
  EXPECT_EQ(attempt([&] { (void)file(); })->code, ErrorCode::bad_state);
  fake_cufile().fail("cuFileDriverGetProperties", 1, 5011, 0);
  EXPECT_EQ(attempt([&] { (void)file(); })->code, ErrorCode::bad_state);
  (void)file();
}

TEST_F(CuFileOfDevices, TellsTheDisksFailuresFromItsOwn) {
  struct Case {
    int result, error;
    ErrorCode code;
  };
  for (const Case& one :
       {Case{-1, ENOSPC, ErrorCode::no_space}, Case{-1, EDQUOT, ErrorCode::no_space}, Case{-1, EIO, ErrorCode::io},
        Case{-1, ESTALE, ErrorCode::io}, Case{-1, EINVAL, ErrorCode::bad_state}, Case{-1, 0, ErrorCode::bad_state},
        Case{-5044, 0, ErrorCode::io}, Case{0, 0, ErrorCode::io}, Case{-5012, 0, ErrorCode::invalid_argument},
        Case{-5014, 0, ErrorCode::invalid_argument}, Case{-5008, 0, ErrorCode::bad_state},
        Case{-5011, 0, ErrorCode::bad_state}, Case{-9999, 0, ErrorCode::bad_state}}) {
    fake_cufile().fail("cuFileWrite", 1, one.result, one.error);
    const auto failure = failure_of_write();
    ASSERT_TRUE(failure) << one.result << " " << one.error;
    EXPECT_EQ(failure->code, one.code) << one.result << " " << one.error << ": " << failure->message;
  }
  EXPECT_FALSE(failure_of_write());
  EXPECT_EQ(attempt([&] {
              file()->write(location(), 4096, {memory + 4096, kSize});
            })->code,
            ErrorCode::invalid_argument);
}

TEST_F(CuFileOfDevices, ADeviceThatIsLostIsSaidFirst) {
  const auto direct = file();
  const MemoryLocation where = location();
  fake_cufile().fail("cuFileWrite", 1, -5011, 0);
  fake().fail("cuCtxSynchronize", 1, 700, false);
  const auto failure = attempt([&] { direct->write(where, 4096, {memory, kSize}); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed) << failure->message;
}

/// As engines ask: by the name that is loaded already; this machine's disk may be of any kind.
TEST_F(CuFileOfDevices, IsLoadedByItsName) {
  const auto devices = system_devices();
  const auto direct = devices->open_direct_file(location(), descriptor);
  direct->write(location(), 4096, {memory, kSize});
  EXPECT_EQ(written(), contents(memory, kSize));
}

TEST(StorageKinds, AreThoseThatCuFileCounts) {
  constexpr long kExt4 = 0xEF53;
  constexpr long kXfs = 0x58465342;
  constexpr long kOverlay = 0x794C7630;
  const std::string nvme = "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";
  const std::string disk = "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
  const std::string virtual_disk = "/sys/devices/pci0000:00/0000:00:05.0/virtio1/block/vda";
  EXPECT_NE(storage_kinds(kExt4, {nvme}) & kNvme, 0U);
  EXPECT_NE(storage_kinds(kXfs, {nvme}) & kP2p, 0U);
  EXPECT_NE(storage_kinds(kXfs, {nvme, nvme}) & kNvme, 0U) << "a RAID";
  EXPECT_EQ(storage_kinds(kXfs, {nvme, virtual_disk}), 0U) << "a RAID, of which one is out of reach";
  EXPECT_EQ(storage_kinds(kXfs, {nvme, disk}), 0U);
  EXPECT_EQ(storage_kinds(kExt4, {disk}), 1U << 6U);
  EXPECT_EQ(storage_kinds(kExt4, {virtual_disk}), 0U);
  EXPECT_EQ(storage_kinds(kExt4, std::vector<std::string>{}), 0U);
  EXPECT_EQ(storage_kinds(kOverlay, {nvme}), 0U);
  EXPECT_EQ(storage_kinds(0x0BD00BD0, {}), 1U) << "Lustre";
  EXPECT_EQ(storage_kinds(-1), 0U) << "no file";
}

}  // namespace
}  // namespace kedge::device::cufile_test

// Memory of GPUs in C: it is read and written after the work of its stream.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "c_api/c_engines.hpp"
#include "harness/model_devices.hpp"
#include "kedge/kedge_device.h"

namespace kedge::faults::c_api_device_test {
namespace {

constexpr std::uint64_t kSize = 64;

class CApiDevice : public testing::Test {
 protected:
  CApiDevice() {
    job.surroundings = [this](int /*rank*/, start::Environment& environment) { environment.devices = devices; };
  }
  void launch(std::byte value) {
    devices->give({&stream}, [this, value] { std::ranges::fill(array.contents(), value); });
    devices->give({&other}, [this] { other_ran = true; });
  }
  /// What lies in the open checkpoint.
  static std::byte loaded(kedge_engine* engine, const char* name) {
    std::vector<std::byte> bytes(kSize);
    EXPECT_EQ(kedge_load(engine, name, bytes.data(), KEDGE_UINT8, 1, &kSize), KEDGE_OK) << kedge_last_error();
    return bytes.front();
  }

  SimulatedJob job{1};
  std::shared_ptr<ModelDevices> devices = std::make_shared<ModelDevices>();
  const ModelDevices::Array array{*devices, 0, kSize};
  int stream = 0;
  int other = 0;
  bool other_ran = false;
};

TEST_F(CApiDevice, IsReadAfterTheStreamThatWasSet) {
  run_in_c(job, [&](int, kedge_engine* engine) {
    ASSERT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
    EXPECT_EQ(kedge_set_stream(engine, &stream), KEDGE_OK);
    launch(std::byte{1});
    EXPECT_EQ(kedge_save(engine, "one", array.address(), KEDGE_UINT8, 1, &kSize), KEDGE_OK) << kedge_last_error();
    EXPECT_FALSE(other_ran);
    EXPECT_EQ(kedge_unset_stream(engine), KEDGE_OK);
    launch(std::byte{2});
    EXPECT_EQ(kedge_save(engine, "two", array.address(), KEDGE_UINT8, 1, &kSize), KEDGE_OK) << kedge_last_error();
    EXPECT_TRUE(other_ran);
    ASSERT_EQ(kedge_commit(engine), KEDGE_OK) << kedge_last_error();

    EXPECT_EQ(opened(engine), "a");
    EXPECT_EQ(loaded(engine, "one"), std::byte{1});
    EXPECT_EQ(loaded(engine, "two"), std::byte{2});
    other_ran = false;
    launch(std::byte{3});  // which may not come after what is loaded
    EXPECT_EQ(kedge_set_stream(engine, &stream), KEDGE_OK);
    EXPECT_EQ(kedge_load(engine, "two", array.address(), KEDGE_UINT8, 1, &kSize), KEDGE_OK) << kedge_last_error();
    EXPECT_FALSE(other_ran);
    devices->synchronize({}, {});
    EXPECT_EQ(array.contents().front(), std::byte{2});
    kedge_want want{};
    want.name = "two";
    want.data = array.address();
    want.dtype = KEDGE_UINT8;
    want.dimensions = 1;
    want.shape = &kSize;
    EXPECT_EQ(kedge_load_all(engine, &want, 1), KEDGE_INVALID_ARGUMENT);
    EXPECT_THAT(kedge_last_error(), testing::HasSubstr("load_all fills host memory"));
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

}  // namespace
}  // namespace kedge::faults::c_api_device_test

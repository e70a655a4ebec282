// Which HDF5 libraries a process has, and when the user is told of two.
#include "format/hdf5_loaded.hpp"

#include <gmock/gmock.h>
#include <hdf5.h>

namespace kedge::format::hdf5_loaded_test {
namespace {

using ::testing::HasSubstr;

TEST(Hdf5Loaded, TheOneThatKedgeUsesIsFoundWithItsVersionAndKind) {
  H5open();
  const auto loaded = loaded_hdf5();
  ASSERT_EQ(loaded.size(), 1U);
  EXPECT_THAT(loaded[0].path, HasSubstr("libhdf5"));
  EXPECT_EQ(loaded[0].version, (std::array<unsigned, 3>{H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE}));
#ifdef H5_HAVE_PARALLEL
  EXPECT_TRUE(loaded[0].is_parallel);
#else
  EXPECT_FALSE(loaded[0].is_parallel);
#endif
  EXPECT_TRUE(loaded[0].is_ours);
  EXPECT_FALSE(hdf5_warning(loaded, true));
}

TEST(Hdf5Loaded, TwoAreNamedWhereKedgeIsPartOfTheProgram) {
  const std::vector<LoadedHdf5> two{{"/a/libhdf5_serial.so.103", {1, 10, 8}, false, true},
                                    {"/b/libhdf5.so.310", {1, 14, 5}, true, false}};
  const auto words = hdf5_warning(two, true);
  ASSERT_TRUE(words);
  EXPECT_THAT(*words, HasSubstr("/a/libhdf5_serial.so.103 (1.10.8, serial), which Kedge uses and "
                                "/b/libhdf5.so.310 (1.14.5, parallel); if"));
  EXPECT_FALSE(hdf5_warning(two, false));
  EXPECT_FALSE(hdf5_warning({}, true));
}

}  // namespace
}  // namespace kedge::format::hdf5_loaded_test

// A program that contains a static HDF5 and loads a shared one has two, and is told so.
#include <gmock/gmock.h>
#include <hdf5.h>

#include "base/loaded_libraries.hpp"
#include "format/hdf5_loaded.hpp"

namespace kedge::format::hdf5_linked_test {
namespace {

using ::testing::HasSubstr;

TEST(Hdf5Linked, AStaticOneCountsAndIsNamedByTheProgram) {
  ASSERT_TRUE(kedge::is_in_program(reinterpret_cast<const void*>(&H5open)));
  const auto loaded = loaded_hdf5();
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_THAT(loaded[0].path, HasSubstr("unit_format_hdf5_linked"));
  EXPECT_EQ(loaded[0].version, (std::array<unsigned, 3>{H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE}));
  EXPECT_TRUE(loaded[0].is_ours);
  EXPECT_THAT(loaded[1].path, HasSubstr("libhdf5"));
  EXPECT_FALSE(loaded[1].is_ours);
  const auto words = hdf5_warning(loaded, is_in_program());
  ASSERT_TRUE(words);
  EXPECT_THAT(*words, HasSubstr("more than one HDF5 library"));
}

}  // namespace
}  // namespace kedge::format::hdf5_linked_test

// What one rank packs another takes apart, and whatever is cut or impossible is an error of that message.
#include "comm/wire.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace kedge::comm::wire_test {
namespace {

enum class Colour : std::uint8_t { red, green, blue };

std::vector<std::byte> everything() {
  Packer packer;
  packer.put(std::uint32_t{7});
  packer.put(std::string_view("fields/t"));
  packer.put(Shape{3, 4});
  packer.put(true);
  packer.put(Colour::blue, Colour::blue);
  packer.put(std::string_view(""));
  packer.put(Shape{});
  packer.put(Id128{{1, 2, 3}});
  return packer.take();
}

void expect_everything(Unpacker& unpacker) {
  EXPECT_EQ(unpacker.get<std::uint32_t>(), 7U);
  EXPECT_EQ(unpacker.get_text(), "fields/t");
  EXPECT_EQ(unpacker.get_shape(), (Shape{3, 4}));
  EXPECT_TRUE(unpacker.get_bool());
  EXPECT_EQ(unpacker.get_enum(Colour::blue), Colour::blue);
  EXPECT_EQ(unpacker.get_text(), "");
  EXPECT_EQ(unpacker.get_shape(), Shape{});
  EXPECT_EQ(unpacker.get<Id128>(), (Id128{{1, 2, 3}}));
}

template <class Step>
std::optional<ErrorCode> refused(Step&& step) {
  try {
    step();
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(Wire, ComesOutAsItWentIn) {
  const std::vector<std::byte> bytes = everything();
  Unpacker unpacker(bytes);
  expect_everything(unpacker);
  EXPECT_TRUE(unpacker.empty());
}

TEST(Wire, AMessageCutAnywhereIsAnError) {
  const std::vector<std::byte> bytes = everything();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto code = refused([&] {
      Unpacker unpacker{std::span(bytes).first(size)};
      expect_everything(unpacker);
    });
    EXPECT_EQ(code, ErrorCode::io) << size;
  }
}

TEST(Wire, ATextLongerThanTheMessageTakesNoMemory) {
  Packer packer;
  packer.put(std::numeric_limits<std::uint32_t>::max());
  const std::vector<std::byte> bytes = packer.take();
  EXPECT_EQ(refused([&] { (void)Unpacker(bytes).get_text(); }), ErrorCode::io);
}

TEST(Wire, ImpossibleValuesAreRefusedByTheReceiver) {
  const std::vector<std::byte> three(200, std::byte{3});
  EXPECT_EQ(refused([&] { (void)Unpacker(three).get_bool(); }), ErrorCode::io);
  EXPECT_EQ(refused([&] { (void)Unpacker(three).get_enum(Colour::blue); }), ErrorCode::io);
  EXPECT_EQ(refused([&] { (void)Unpacker(three).get_enum(DataType::opaque, DataType::int32); }), std::nullopt);
  EXPECT_EQ(refused([&] { (void)Unpacker(three).get_enum(DataType::opaque, DataType::int64); }), ErrorCode::io);
  const std::vector<std::byte> nine(200, std::byte{Shape::kMaxDimensions + 1});
  EXPECT_EQ(refused([&] { (void)Unpacker(nine).get_shape(); }), ErrorCode::io);
}

TEST(Wire, ImpossibleValuesAreNotSent) {
  Packer packer;
  EXPECT_THROW(packer.put(static_cast<Colour>(3), Colour::blue), BrokenInvariant);
  EXPECT_THROW(packer.put(Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), BrokenInvariant);
  EXPECT_TRUE(packer.empty());
}

}  // namespace
}  // namespace kedge::comm::wire_test

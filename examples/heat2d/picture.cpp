#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace heat2d {
namespace {

constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 28U;  // 2 GiB of temperatures

/// The next number of a PGM header; comments run from # to the end of the line.
std::uint64_t header_number(std::istream& in) {
  in >> std::ws;
  while (in.peek() == '#') {
    std::string comment;
    std::getline(in, comment);
    in >> std::ws;
  }
  std::uint64_t value = 0;
  in >> value;
  return value;
}

/// Bytes from here to the end of the file.
std::uint64_t bytes_left(std::istream& in) {
  const auto here = in.tellg();
  in.seekg(0, std::ios::end);
  const auto left = in.tellg() - here;
  in.seekg(here);
  return left < 0 ? 0 : static_cast<std::uint64_t>(left);
}

Picture built_in() {
  Picture picture{512, 384, {}};
  for (std::uint64_t y = 0; y < picture.height; ++y) {
    for (std::uint64_t x = 0; x < picture.width; ++x) {
      // A hot disc and a hot bar on a cold plate.
      const double dx = static_cast<double>(x) - 160.0;
      const double dy = static_cast<double>(y) - 140.0;
      const bool disc = dx * dx + dy * dy < 70.0 * 70.0;
      const bool bar = x > 300 && x < 470 && y > 260 && y < 290;
      picture.pixels.push_back(disc || bar ? 1.0 : 0.1);
    }
  }
  return picture;
}

}  // namespace

Picture load_picture(const std::string& path) {
  if (path.empty()) return built_in();
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + " cannot be opened; pass the path of a PGM picture");
  std::string magic;
  in >> magic;
  const std::uint64_t width = header_number(in);
  const std::uint64_t height = header_number(in);
  const std::uint64_t white = header_number(in);
  const bool known = magic == "P2" || magic == "P5";
  if (!in || !known || width == 0 || height == 0 || white == 0 || white > 65535) {
    throw std::runtime_error(path + " is not a PGM picture that heat2d can read (P2 or P5)");
  }
  if (height > kMaxPixels / width) {
    throw std::runtime_error(path + " claims " + std::to_string(width) + " x " + std::to_string(height) +
                             " pixels; heat2d accepts at most " + std::to_string(kMaxPixels));
  }
  in.get();  // the one white space before the pixels
  // Before memory is taken for what the header claims.
  const std::uint64_t least_bytes = magic == "P2" ? 2 * width * height - 1 : width * height * (white > 255 ? 2 : 1);
  if (bytes_left(in) < least_bytes) throw std::runtime_error(path + " ends before its last pixel");
  Picture picture{width, height, {}};
  picture.pixels.resize(width * height);
  for (double& pixel : picture.pixels) {
    std::uint64_t value = 0;
    if (magic == "P2") {
      in >> value;
    } else {
      value = static_cast<unsigned char>(in.get());
      if (white > 255) value = value * 256 + static_cast<unsigned char>(in.get());
    }
    if (value > white) throw std::runtime_error(path + " has a pixel above its maximum value");
    pixel = static_cast<double>(value) / static_cast<double>(white);
  }
  if (!in) throw std::runtime_error(path + " ends before its last pixel");
  return picture;
}

void save_picture(const std::string& path, std::span<const double> field, std::uint64_t width, std::uint64_t height) {
  std::ofstream out(path, std::ios::binary);
  out << "P5\n" << width << ' ' << height << "\n255\n";
  for (const double value : field) out.put(static_cast<char>(std::lround(std::clamp(value, 0.0, 1.0) * 255.0)));
  if (!out.flush()) throw std::runtime_error(path + " could not be written");
}

std::string checksum(std::span<const double> field) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte byte : std::as_bytes(field)) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace heat2d

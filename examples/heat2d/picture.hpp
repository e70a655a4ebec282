// Grey pictures (PGM) in and out: the initial temperature and the result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heat2d {

struct Picture {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::vector<double> pixels;  ///< row by row, 0 (black) to 1 (white)
};

/// Reads a PGM file (P2 or P5, 8 or 16 bit); an empty path gives a built-in picture of 512 x 384.
/// Throws std::runtime_error that names the path.
[[nodiscard]] Picture load_picture(const std::string& path);
/// Writes an 8-bit PGM; values are cut to 0..1.
void save_picture(const std::string& path, std::span<const double> field, std::uint64_t width, std::uint64_t height);
/// FNV-1a over the bytes of the field, 16 hex digits: equal only if every bit is.
[[nodiscard]] std::string checksum(std::span<const double> field);

}  // namespace heat2d

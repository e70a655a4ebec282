// Configuration words for the values of options that are a choice.
#pragma once

#include <array>
#include <utility>

#include "kedge/options.hpp"

namespace kedge {

/// `kAll`: each enumerator and its name.
template <class E>
struct Words;
template <>
struct Words<LogLevel> {
  static constexpr std::array kAll = {std::pair{LogLevel::debug, "debug"}, std::pair{LogLevel::info, "info"},
                                      std::pair{LogLevel::warning, "warning"}, std::pair{LogLevel::error, "error"},
                                      std::pair{LogLevel::off, "off"}};
};
template <>
struct Words<StartMode> {
  static constexpr std::array kAll = {std::pair{StartMode::continue_, "continue"}, std::pair{StartMode::fresh, "fresh"},
                                      std::pair{StartMode::adopt, "adopt"}, std::pair{StartMode::accept, "accept"},
                                      std::pair{StartMode::adopt_and_accept, "adopt_and_accept"}};
};
template <>
struct Words<OnExit> {
  static constexpr std::array kAll = {std::pair{OnExit::keep, "keep"},
                                      std::pair{OnExit::remove_if_persistent, "remove_if_persistent"},
                                      std::pair{OnExit::remove, "remove"}};
};
template <>
struct Words<Verify> {
  static constexpr std::array kAll = {std::pair{Verify::all, "all"}, std::pair{Verify::loaded, "loaded"},
                                      std::pair{Verify::headers, "headers"}};
};
template <>
struct Words<OtherRanks> {
  static constexpr std::array kAll = {std::pair{OtherRanks::accept, "accept"},
                                      std::pair{OtherRanks::refuse, "refuse"}};
};
template <>
struct Words<Io> {
  static constexpr std::array kAll = {std::pair{Io::automatic, "auto"}, std::pair{Io::buffered, "buffered"},
                                      std::pair{Io::direct, "direct"}};
};
template <>
struct Words<DevicePath> {
  static constexpr std::array kAll = {std::pair{DevicePath::automatic, "auto"},
                                      std::pair{DevicePath::buffers, "buffers"}, std::pair{DevicePath::gds, "gds"}};
};
template <>
struct Words<PipelineMode> {
  static constexpr std::array kAll = {std::pair{PipelineMode::automatic, "auto"},
                                      std::pair{PipelineMode::inline_, "inline"},
                                      std::pair{PipelineMode::background, "background"}};
};
template <>
struct Words<WhenFull> {
  static constexpr std::array kAll = {std::pair{WhenFull::block, "block"}, std::pair{WhenFull::fail, "fail"}};
};
template <>
struct Words<Messages> {
  static constexpr std::array kAll = {std::pair{Messages::automatic, "auto"}, std::pair{Messages::mpi, "mpi"},
                                      std::pair{Messages::tcp, "tcp"}};
};
template <>
struct Words<Trust> {
  static constexpr std::array kAll = {std::pair{Trust::self, "self"}, std::pair{Trust::group, "group"},
                                      std::pair{Trust::any, "any"}};
};
template <>
struct Words<Scheme> {
  static constexpr std::array kAll = {std::pair{Scheme::automatic, "auto"}, std::pair{Scheme::single, "single"},
                                      std::pair{Scheme::partner, "partner"}, std::pair{Scheme::xor_, "xor"},
                                      std::pair{Scheme::rs, "rs"}};
};

}  // namespace kedge

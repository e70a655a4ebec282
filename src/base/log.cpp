#include "base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <exception>
#include <utility>

#include "base/file_size_signal.hpp"
#include "base/text.hpp"

namespace kedge {
namespace {

// %* of our pattern: nothing for a line of course, the word for what needs attention.
class AttentionFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& line) override {
    std::string_view word;
    if (message.level == spdlog::level::warn) word = "warning: ";
    if (message.level == spdlog::level::err) word = "error: ";
    if (message.level == spdlog::level::debug) word = "debug: ";
    line.append(word.data(), word.data() + word.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<AttentionFlag>();
  }
};

spdlog::level::level_enum level_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: break;
  }
  return spdlog::level::off;
}

// Not registered with spdlog: the application's own use of it stays its own.
std::shared_ptr<spdlog::logger> make_stderr_logger() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<AttentionFlag>('*').set_pattern("[kedge] %*%v");
  auto logger = std::make_shared<spdlog::logger>("kedge", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  logger->set_error_handler([](const std::string& /*problem*/) {});  // the default one would print it
  return logger;
}

}  // namespace

struct Log::Writer {
  Options::Log options;
  std::shared_ptr<spdlog::logger> logger;  // null if the application gave a sink
};

Log::Log(const Options::Log& options) : writer_(std::make_shared<Writer>(Writer{options, nullptr})) {
  if (!options.sink) writer_->logger = make_stderr_logger();
}

bool Log::is_enabled(LogLevel level) const noexcept {
  return level != LogLevel::off && writer_->options.level != LogLevel::off && level >= writer_->options.level;
}

void Log::write(LogLevel level, std::string_view text) const noexcept {
  if (!is_enabled(level)) return;
  const ScopedFileSizeSignalBlock no_signal;  // standard error may be a file
  try {
    const std::string line = printable_lines(text);
    if (writer_->logger) writer_->logger->log(level_of(level), line);
    else writer_->options.sink(level, line);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a lost line must not end a job
  }
}

}  // namespace kedge

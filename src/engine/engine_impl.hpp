// One engine: the context, and the two sides that work in it.
#pragma once

#include <memory>
#include <string_view>

#include "engine/context.hpp"
#include "engine/flusher.hpp"
#include "engine/reader.hpp"
#include "engine/writer.hpp"
#include "kedge/engine.hpp"

namespace kedge::engine {

class EngineImpl {
 public:
  /// COLLECTIVE.
  EngineImpl(std::unique_ptr<Communicator> communicator, Options options, Environment environment);

  /// Local. A dead engine's files stay mapped: messages that nobody waits for any more may still be sent from them.
  ~EngineImpl();
  EngineImpl(const EngineImpl&) = delete;
  EngineImpl& operator=(const EngineImpl&) = delete;

  bool need_checkpoint();
  void wait(std::string_view tag, Level level);
  void finalize();

  void pin(std::string_view tag, bool pinned) const;

  Context context;
  Flusher flusher;
  Writer writer;
  Reader reader;

 private:
  void flush_newest();
  void leave_store();
  void remove_on_purpose();
  void remove_if_persistent();
  std::uint64_t need_checkpoint_calls_ = 0;
};

}  // namespace kedge::engine
